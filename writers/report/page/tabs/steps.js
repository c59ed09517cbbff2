/* steps.js: the steps of the program and their parts. The parts of a step are those of its thread and add up to its
 * duration: operators, Python outside of them, garbage collections, and time outside all calls. */

const STEP_PARTS = [['operators', 'Operators'], ['python', 'Python'], ['collections', 'Collections'], ['rest', 'Outside calls']];

/* Spans of time that do not overlap, in order. */
class Intervals {
  constructor() {
    this.starts = [];
    this.ends = [];
    this.sums = [0]; // of those before each
  }

  add(start, end) {
    this.starts.push(start);
    this.ends.push(end);
    this.sums.push(this.sums[this.sums.length - 1] + end - start);
  }

  before(time) {
    const after = firstWhere(0, this.starts.length, (i) => this.starts[i] >= time);
    return this.sums[after] - (after ? Math.max(this.ends[after - 1] - time, 0) : 0);
  }

  within(from, to) {
    return this.before(to) - this.before(from);
  }
}

/* Returns when the parts of a thread were: all calls, operators, collections, and collections in operators. */
function threadParts({kinds}, track) {
  const IN_OPERATOR = 1, IN_COLLECTION = 2;
  const parts = {calls: new Intervals(), operators: new Intervals(), collections: new Intervals(), both: new Intervals()};
  const {count, start, end, parent, nameOf} = track;
  const states = new Uint8Array(count), hasCollections = track.collections.size > 0;
  for (let i = 0; i < count; i++) {
    const outer = parent[i] < 0 ? 0 : states[parent[i]];
    states[i] = outer;
    if (parent[i] < 0) parts.calls.add(start[i], end[i]);
    if (kinds?.[nameOf[i]] === OPERATOR) {
      states[i] |= IN_OPERATOR;
      if (!outer) parts.operators.add(start[i], end[i]);
    } else if (hasCollections && track.collections.has(i)) {
      states[i] |= IN_COLLECTION;
      parts.collections.add(start[i], end[i]);
      if (outer & IN_OPERATOR) parts.both.add(start[i], end[i]);
    }
  }
  return parts;
}

/* Returns when any stream of a process was busy, or null if no GPU was recorded. */
function gpuBusy(model, owner) {
  const busy = new Intervals(), spans = [];
  for (const {group, count, start, end} of model.tracks) {
    if (group.name !== STREAMS || group.owner !== owner) continue;
    for (let i = 0; i < count; i++) spans.push([start[i], end[i]]);
  }
  let last = -Infinity;
  for (const [start, end] of spans.sort((a, b) => a[0] - b[0])) {
    if (end <= last) continue;
    busy.add(Math.max(start, last), end);
    last = end;
  }
  return spans.length ? busy : null;
}

/* Flags the slowest step and one that took as long as the median. Steps that are not whole are not compared. */
function rankSteps(rows) {
  const whole = rows.filter(({step}) => !step.flags);
  const sorted = (whole.length ? whole : rows).slice().sort((a, b) => a.took - b.took);
  const median = sorted[sorted.length >> 1], slowest = sorted[sorted.length - 1];
  for (const row of rows) row.note = FLAGS.filter(([flag]) => row.step.flags & flag).map(([, text]) => text).join(', ');
  if (sorted.length < 2) return {median};
  median.note = 'median';
  slowest.note = `slowest, ${(slowest.took / (median.took || 1)).toFixed(2)} × the median`;
  return {median, slowest};
}

/* Returns a row for each step: {name, number, took, parts, elsewhere, gpu, step}. name is the place in the order of
 * time; elsewhere is the time in operators of the process's other threads, added up. */
function stepRows(model) {
  const parts = new Map(), busy = new Map(), threads = model.tracks.filter((track) => track.hasOperators);
  const partsOf = (track) => parts.get(track) ?? parts.set(track, threadParts(model, track)).get(track);
  const busyOf = (owner) => (busy.has(owner) ? busy : busy.set(owner, gpuBusy(model, owner))).get(owner);
  return model.steps.map((step, name) => {
    const {start, end, track, owner} = step, took = end - start;
    const of = track ? partsOf(track) : null;
    const time = (part) => (of ? of[part].within(start, end) : 0);
    const [calls, inside, collections, both] = [time('calls'), time('operators'), time('collections'), time('both')];
    const others = threads.filter((other) => other !== track && other.group.owner === owner);
    return {name, number: step.number, took, step, operators: inside - both, python: calls - inside - collections + both,
            collections, rest: took - calls, gpu: busyOf(owner)?.within(start, end) ?? 0,
            elsewhere: others.reduce((sum, other) => sum + partsOf(other).operators.within(start, end), 0)};
  });
}

class StepTable extends SortTable {
  constructor(table, model, chosen) {
    super(table, [], chosen);
    this.model = model;
    this.key = 'number';
    this.sign = 1;
  }

  set(rows) {
    const has = (key) => rows.some((row) => row[key] > 0);
    const columns = [['number', 'Step', String], ['took', 'Duration', showTime], ...STEP_PARTS.map(([key, title]) => [key, title, showTime]),
                     ['elsewhere', 'Operators of other threads', showTime], ['gpu', 'GPU busy', showTime]];
    this.columns = [...columns.filter(([key]) => ['number', 'took', 'python'].includes(key) || has(key)), ['name', 'Parts', null]];
    this.longest = rows.reduce((most, row) => Math.max(most, row.took), 1);
    this.hasThreads = new Set(rows.map(({step}) => step.track)).size > 1;
    this.ranks = rankSteps(rows);
    super.set(rows);
  }

  value(row, key) {
    return row[key];
  }

  lastCell(cell, row) {
    const bar = element('span', null, {className: 'parts'});
    bar.style.width = `${Math.max(360 * row.took / this.longest, 1)}px`;
    for (const [key, title] of STEP_PARTS) {
      const part = element('i', null, {className: key, title: `${title}: ${showTime(row[key])}, ${(100 * row[key] / (row.took || 1)).toFixed(1)} %`});
      part.style.width = `${100 * Math.max(row[key], 0) / (row.took || 1)}%`;
      bar.append(part);
    }
    const {name, track} = row.step;
    cell.append(bar, name);
    if (row.note) cell.append(element('span', `  ${row.note}`, {className: row.note.startsWith('slowest') ? 'warn' : 'where'}));
    if (this.hasThreads && track) cell.append(element('span', `  ${track.name}`, {className: 'where'}));
  }

  /* Returns what all rows say. */
  get summary() {
    const {median, slowest} = this.ranks, count = this.rows.length;
    const text = `${showCount(count)} step${count === 1 ? '' : 's'}`;
    return slowest ? `${text}, median ${showTime(median.took)}, slowest ${showTime(slowest.took)} (step ${slowest.number})` : text;
  }
}
