/* links.js: what belongs together though it lies apart: a call and the kernels that it launched, a resume of a task and
 * the call that it is, marks and spans of one flow. What is selected has arrows to it, and the panel has buttons. */

const MOST_LAUNCHES = 16;

/* A link: what the place at its other end is to the one that is selected; that place, {track, span} or {track, mark}; the
 * key that goes there, if any (g goes to the last where no link has it); when the arrow leaves here, and arrives there;
 * whether it points here. */
function link(what, key, to, here, there, pointsHere = false) {
  return {what, key, to, here, there, pointsHere};
}

class Links {
  constructor(model) {
    this.model = model;
  }

  /* By flow: GPUs' numbers, and what the program gave. Made when it is first needed. */
  index() {
    if (this.gpu) return;
    this.gpu = new Map();
    this.flows = new Map();
    this.callers = new Map(); // by thread: its calls of CUDA, and the other way round
    this.threads = new Map();
    const add = (map, track, flow, end) => {
      const key = `${track.group.owner} ${flow}`;
      if (!map.has(key)) map.set(key, []);
      map.get(key).push(end);
    };
    const flowOf = (note) => this.model.note(note)?.flow ?? '0';
    for (const track of this.model.tracks) {
      if (track.tid) (track.isCalls ? this.callers : this.threads).set(`${track.group.owner} ${track.tid}`, track);
      for (let i = 0; track.flow && i < track.count; i++) if (track.flow[i]) add(this.gpu, track, track.flow[i], {track, span: i});
      for (let i = 0; track.more.note && i < track.count; i++)
        if (flowOf(track.more.note[i]) !== '0') add(this.flows, track, flowOf(track.more.note[i]), {track, span: i});
      for (const mark of track.marks) if (flowOf(mark.note) !== '0') add(this.flows, track, flowOf(mark.note), {track, mark});
    }
    for (const ends of this.flows.values()) ends.sort((a, b) => this.start(a) - this.start(b));
  }

  start({track, span, mark}) {
    return mark ? mark.at : track.start[span];
  }

  end({track, span, mark}) {
    return mark ? mark.at : track.end[span];
  }

  /* All links of what is selected. */
  of(selected) {
    if (!selected) return [];
    this.index();
    const {track, span} = selected;
    if (selected.mark) return this.ofFlow(selected, selected.mark.note);
    if (track.isTask) return this.ofTask(track, span);
    return [...this.ofResume(track, span), ...this.ofGpu(track, span), ...this.ofFlow(selected, track.get('note', span))];
  }

  /* --- tasks --- */

  /* The resumes beside one; END makes a place of a resume's number. */
  beside(track, resume, end) {
    const links = [];
    if (resume > 0) links.push(link('resumed before', 'p', end(resume - 1), track.start[resume], track.end[resume - 1], true));
    if (resume + 1 < track.count) links.push(link('resumed next', 'n', end(resume + 1), track.end[resume], track.start[resume + 1]));
    return links;
  }

  ofTask(track, resume) {
    const [thread, span] = callOf(this.model, track, resume);
    return [link('the call', 'g', {track: thread, span}, track.start[resume], track.start[resume]),
            ...this.beside(track, resume, (number) => ({track, span: number}))];
  }

  ofResume(track, span) {
    const place = resumeOf(this.model, track, span);
    if (!place?.task.track) return [];
    const {task, resume} = place, at = track.start[span];
    const call = (number) => {
      const [thread, there] = callOf(this.model, task.track, number);
      return {track: thread, span: there};
    };
    return [link('on its track', 'g', {track: task.track, span: resume}, at, at), ...this.beside(task.track, resume, call)];
  }

  /* --- GPUs --- */

  ofGpu(track, span) {
    if (track.isCalls) return [...this.started(track, span, 'g'), ...this.caller(track, span, track.start[span], '')];
    if (track.flow) return this.launch(track, span);
    return this.launches(track, span);
  }

  /* Ends of the same number as a call of CUDA, or as what it started: IS_CALLS says which are wanted. */
  ends(track, span, isCalls) {
    const flow = track.flow?.[span];
    return (flow && this.gpu.get(`${track.group.owner} ${flow}`) || []).filter((end) => Boolean(end.track.isCalls) === isCalls);
  }

  /* What a call of CUDA started. */
  started(calls, span, key) {
    return this.ends(calls, span, false).map((end, i) =>
      link('started on the GPU', i ? '' : key, end, calls.start[span], this.start(end)));
  }

  /* The innermost call of Python around a call of CUDA; AT: where its arrow ends. */
  caller(calls, span, at, key) {
    const thread = this.threads.get(`${calls.group.owner} ${calls.tid}`);
    const time = calls.start[span];
    if (!thread) return [];
    let around = firstWhere(0, thread.count, (i) => thread.start[i] > time) - 1;
    while (around >= 0 && thread.end[around] < time) around = thread.parent[around];
    return around < 0 ? [] : [link('called by', key, {track: thread, span: around}, at, time, true)];
  }

  /* Who launched a kernel, a copy or a setting of memory. */
  launch(track, span) {
    const at = track.start[span];
    return this.ends(track, span, true).flatMap((end) => {
      const python = this.caller(end.track, end.span, at, 'g');
      return [...python, link('launched by', python.length ? '' : 'g', end, at, this.start(end), true)];
    });
  }

  /* What a call of Python started on GPUs, itself or deeper: the first so many. */
  launches(track, span) {
    const calls = track.tid ? this.callers.get(`${track.group.owner} ${track.tid}`) : undefined;
    const links = [];
    if (!calls) return links;
    const first = firstWhere(0, calls.count, (i) => calls.start[i] >= track.start[span]);
    for (let i = first; i < calls.count && calls.start[i] < track.end[span] && links.length < MOST_LAUNCHES; i++)
      links.push(...this.started(calls, i, links.length ? '' : 'g'));
    return links;
  }

  /* --- what the program connected --- */

  ofFlow(selected, note) {
    const {track} = selected;
    const ends = this.flows.get(`${track.group.owner} ${this.model.note(note)?.flow}`);
    if (!ends || ends.length < 2) return [];
    const here = ends.findIndex((end) => end.track === track && end.mark === selected.mark && end.span === selected.span);
    const links = [];
    if (here > 0) links.push(link('flow from', 'p', ends[here - 1], this.start(selected), this.end(ends[here - 1]), true));
    if (here + 1 < ends.length) links.push(link('flow to', 'n', ends[here + 1], this.end(selected), this.start(ends[here + 1])));
    return links;
  }
}

function placeName(model, {track, span, mark}) {
  return mark ? model.note(mark.note).name : model.names[track.nameOf[span]].text;
}

/* Which task a call is a resume of, and the how manieth; undefined: it is none. */
function resumeOf(model, track, span) {
  const task = model.tasks[track.get('task', span) - 1];
  if (!task) return undefined;
  const {track: of} = task;
  return {task, resume: of ? firstWhere(0, of.count, (i) => of.start[i] >= track.start[span]) : -1};
}

/* Arrows of what is selected. PLACE: the middle of a place's row on the canvas; undefined: it is not laid out. */
function drawArrows(context, links, selected, place, x) {
  const here = place(selected);
  context.strokeStyle = context.fillStyle = theme.accent;
  context.lineWidth = 1.5;
  for (const {to, here: leaves, there, pointsHere} of links) {
    const y = place(to);
    if (here === undefined || y === undefined) continue;
    const ends = [[x(leaves), here], [x(there), y]];
    const [[fromX, fromY], [toX, toY]] = pointsHere ? ends.reverse() : ends;
    const bend = Math.max(Math.min(Math.abs(toX - fromX) / 2, 80), 12);
    context.beginPath();
    context.moveTo(fromX, fromY);
    context.bezierCurveTo(fromX + bend, fromY, toX - bend, toY, toX, toY);
    context.stroke();
    context.beginPath();
    context.moveTo(toX, toY);
    context.lineTo(toX - 7, toY - 4);
    context.lineTo(toX - 7, toY + 4);
    context.fill();
  }
}
