/* bands.js: what the timeline shows below each other, and where: the headings of groups, and the lanes of their
 * tracks. A lane is a track, or several short-lived threads of one kind that ran after each other. The busiest
 * lanes are first; of a group with very many lanes the rest is behind a heading, and so are idle lanes. */

const RULER = 22, HEAD = 22, MARKS = 13, VALUES = 40, GROUP = 24;
const MAX_OPEN = 200; // lanes of a group; of more, only the busiest are shown at first
const SHOWN_FIRST = 30, MIN_POOL = 5;
const MAX_LANES = 500; // of a pool: placing a thread takes time for each
const SORTED_GROUPS = new Set([THREADS, 'Greenlets']);
const ORDERS = {
  busy: ['Busiest first', (a, b) => b.busy - a.busy],
  start: ['In order of start', (a, b) => a.first - b.first],
  name: ['By name', (a, b) => a.name.localeCompare(b.name, 'en', {numeric: true})],
};

/* Tracks that share rows: they do not overlap in time, and are sorted by it. */
class Lane {
  constructor(tracks, name, pool) {
    this.tracks = tracks;
    this.name = name;
    this.pool = pool; // label of the pool of threads; null: the lane is one track
    this.folded = false;
    this.hasMarks = tracks.some((track) => track.marks.length > 0);
    this.values = tracks[0].values !== null;
    this.first = tracks[0].first;
    this.busy = tracks.reduce((sum, track) => sum + track.busy, 0); // of a pool, that of all its lanes
    this.isIdle = tracks.every(isIdle);
  }

  get rows() {
    return this.tracks.reduce((most, track) => Math.max(most, track.rows), 0);
  }

  get height() {
    if (this.folded) return HEAD;
    return HEAD + (this.values ? VALUES : this.rows * ROW + (this.hasMarks ? MARKS : 0) + 4);
  }

  /* Yields the tracks between two times. Of tracks that lie within one pixel only the first is yielded. */
  * within(from, to, pixel) {
    const {tracks} = this;
    if (tracks.length === 1) {
      yield tracks[0];
      return;
    }
    let i = firstWhere(0, tracks.length, (k) => tracks[k].last > from);
    while (i < tracks.length && tracks[i].first < to) {
      const track = tracks[i];
      yield track;
      const next = track.last - track.first < pixel ? track.first + pixel : track.last;
      i = firstWhere(i + 1, tracks.length, (k) => tracks[k].last > next);
    }
  }

  /* Returns the track at a time, or the next one after it. */
  at(time) {
    const {tracks} = this;
    return tracks[Math.min(firstWhere(0, tracks.length, (k) => tracks[k].last > time), tracks.length - 1)];
  }
}

/* Whether nothing began or ended in a track: its calls were open when the trace began, and until it ended. */
function isIdle({count, marks, values, more}) {
  if (marks.length || values) return false;
  for (let i = 0; i < count; i++) if (((more.flags ? more.flags[i] : 0) & THROUGHOUT) !== THROUGHOUT) return false;
  return true;
}

/* Returns what the name of a thread shares with those of its kind: "serve" for "Thread-7 (serve)", and "pool" for
 * "pool-0_12". */
function kindOf({name, tid}) {
  const plain = name.endsWith(`  ${tid}`) ? name.slice(0, -2 - String(tid).length) : name;
  return /^.*\d.*\((.+)\)$/.exec(plain)?.[1] ?? (plain.replace(/[-_ ]*\d+/g, '') || plain);
}

/* Places tracks into as few lanes as possible, each after the end of the one before it. Returns null if that takes
 * more than MOST lanes. */
function pack(tracks, most) {
  const lanes = [], sorted = tracks.slice().sort((a, b) => a.first - b.first);
  for (const track of sorted) {
    const lane = lanes.find((placed) => placed[placed.length - 1].last <= track.first);
    if (lane) lane.push(track);
    else if (lanes.push([track]) > most) return null;
  }
  return lanes;
}

/* Returns the lanes of the threads of a process. Threads of one kind share lanes if that halves their number. */
function lanesOfThreads(tracks) {
  const kinds = new Map();
  for (const track of tracks) {
    const kind = kindOf(track);
    if (!kinds.has(kind)) kinds.set(kind, []);
    kinds.get(kind).push(track);
  }
  return [...kinds].flatMap(([kind, members]) => {
    const packed = members.length < MIN_POOL ? null : pack(members, Math.min(members.length / 2, MAX_LANES));
    if (!packed) return members.map((track) => new Lane([track], track.name, null));
    const lanes = packed.map((lane, i) => new Lane(lane, packed.length > 1 ? `${kind}  lane ${i + 1}` : kind, kind));
    const busy = lanes.reduce((sum, lane) => sum + lane.busy, 0);
    return lanes.map((lane) => Object.assign(lane, {busy})); // so they stay together
  });
}

class Bands {
  constructor(model) {
    this.order = 'busy';
    this.closed = new Set(); // headings of closed groups
    this.opened = new Set(); // headings of groups of which all lanes are shown
    this.groups = [];
    const processes = new Set(model.tracks.map((track) => track.group.process));
    const groups = [];
    for (const track of model.tracks) {
      const {process, name} = track.group;
      const heading = processes.size > 1 ? `${process} · ${name}` : name;
      if (groups[groups.length - 1]?.heading !== heading) groups.push({heading, name, tracks: []});
      groups[groups.length - 1].tracks.push(track);
    }
    this.groups = groups.map(({heading, name, tracks}) => {
      const lanes = name === THREADS ? lanesOfThreads(tracks) : tracks.map((track) => new Lane([track], track.name, null));
      return {heading, lanes, count: tracks.length, isSorted: SORTED_GROUPS.has(name) || tracks[0].isTask, isThreads: name === THREADS};
    });
    this.headingOf = new Map(this.groups.flatMap(({heading, lanes}) => lanes.flatMap(({tracks}) => tracks.map((track) => [track, heading]))));
    // Groups that would push the threads out of view are closed at first.
    for (const {heading, lanes, isThreads} of this.groups) if (!isThreads && lanes.length > MAX_OPEN) this.closed.add(heading);
  }

  /* Returns the pools of threads: {name, tracks}. */
  get pools() {
    const pools = [];
    for (const {lanes} of this.groups) {
      for (const {pool, tracks} of lanes) {
        if (pool === null) continue;
        if (pools[pools.length - 1]?.name !== pool) pools.push({name: pool, tracks: []});
        pools[pools.length - 1].tracks.push(...tracks);
      }
    }
    return pools;
  }

  /* Returns the lanes of a group that are shown, and those behind its second heading. */
  split({lanes, isSorted, isThreads}) {
    if (!isSorted) return [lanes, []];
    const sorted = lanes.slice().sort(ORDERS.busy[1]);
    const busy = sorted.filter((lane) => !lane.isIdle);
    const count = isThreads && busy.length > MAX_OPEN ? SHOWN_FIRST : busy.length || SHOWN_FIRST;
    const shown = (busy.length ? busy : sorted).slice(0, count);
    const chosen = new Set(shown);
    return [shown, sorted.filter((lane) => !chosen.has(lane))].map((part) => part.sort(ORDERS[this.order][1]));
  }

  /* Returns the bands from the top: {y, height}, and {lane, track} for a lane, {heading, count} for a group, or
   * {more, text} for the heading of the lanes that are not shown at first. */
  layOut() {
    const bands = [];
    let y = RULER;
    const push = (height, band) => {
      bands.push({y, height, ...band});
      y += height;
    };
    const place = (lane) => push(lane.height, {lane, track: lane.tracks[0]});
    for (const group of this.groups) {
      const {heading, count} = group;
      push(GROUP, {heading, count});
      if (this.closed.has(heading)) continue;
      const [shown, rest] = this.split(group);
      shown.forEach(place);
      if (!rest.length) continue;
      push(GROUP, {more: heading, text: restText(rest)});
      if (this.opened.has(heading)) rest.forEach(place);
    }
    this.height = y + 8;
    return bands;
  }

  /* Shows a track's group, and all lanes of it if the track is not among the first. */
  open(track) {
    const heading = this.headingOf.get(track);
    this.closed.delete(heading);
    const group = this.groups.find((one) => one.heading === heading);
    if (!this.split(group)[0].some(({tracks}) => tracks.includes(track))) this.opened.add(heading);
  }

  toggle({heading, more}) {
    const set = heading ? this.closed : this.opened;
    if (!set.delete(heading ?? more)) set.add(heading ?? more);
  }
}

function restText(lanes) {
  const threads = (some) => some.reduce((sum, {tracks}) => sum + tracks.length, 0);
  const idle = threads(lanes.filter((lane) => lane.isIdle)), calm = threads(lanes) - idle;
  return [calm ? `${showCount(calm)} less busy` : '', idle ? `${showCount(idle)} idle` : ''].filter(Boolean).join(', ');
}
