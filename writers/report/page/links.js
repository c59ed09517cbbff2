/* links.js: connections between separate spans: a call and the kernels that it launched, a task's resume and
 * its call, marks and spans of one flow. Arrows are drawn to the links of the selection, and the panel has
 * buttons for them. */

const MAX_LAUNCHES = 16;

/* Makes a link of the selection. WHAT: the role of the target. KEY: the key that selects the target, if any (g
 * selects the last link if no link has it). TO: the target, {track, span} or {track, mark}. HERE and THERE: the
 * times of the arrow's ends at the selection and at the target. POINTS_HERE: whether the arrow points to the
 * selection. */
function link(what, key, to, here, there, pointsHere = false) {
  return {what, key, to, here, there, pointsHere};
}

class Links {
  constructor(model) {
    this.model = model;
  }

  /* Makes the maps by flow, of GPU correlation numbers and of the program's flows. Called when they are first
   * needed. */
  index() {
    if (this.gpu) return;
    this.gpu = new Map();
    this.flows = new Map();
    this.callers = new Map(); // by thread: the track of its CUDA calls; in threads: its own track
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

  /* Returns all links of the selection. */
  of(selected) {
    if (!selected) return [];
    this.index();
    const {track, span} = selected;
    if (selected.mark) return this.ofFlow(selected, selected.mark.note);
    if (track.isTask) return this.ofTask(track, span);
    return [...this.ofResume(track, span), ...this.ofGpu(track, span), ...this.ofFlow(selected, track.get('note', span))];
  }

  /* --- tasks --- */

  /* Returns links to the previous and the next resume. END converts a resume's number to a place. */
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

  /* Returns the ends with the same flow number as a span: CUDA calls if IS_CALLS, else the work they started. */
  ends(track, span, isCalls) {
    const flow = track.flow?.[span];
    return (flow && this.gpu.get(`${track.group.owner} ${flow}`) || []).filter((end) => Boolean(end.track.isCalls) === isCalls);
  }

  /* Returns links to the work that a CUDA call started. */
  started(calls, span, key) {
    return this.ends(calls, span, false).map((end, i) =>
      link('started on the GPU', i ? '' : key, end, calls.start[span], this.start(end)));
  }

  /* Returns the innermost span of a thread at a time, or -1. */
  around(thread, time) {
    let around = firstWhere(0, thread.count, (i) => thread.start[i] > time) - 1;
    while (around >= 0 && thread.end[around] < time) around = thread.parent[around];
    return around;
  }

  /* Returns a link to the innermost Python call around a CUDA call. AT: the time of the arrow's end at the
   * selection. */
  caller(calls, span, at, key) {
    const thread = this.threads.get(`${calls.group.owner} ${calls.tid}`);
    const time = calls.start[span];
    if (!thread) return [];
    let around = this.around(thread, time);
    if (around >= 0 && thread.hidden?.[thread.nameOf[around]]) around = thread.shownParent[around];
    return around < 0 ? [] : [link('called by', key, {track: thread, span: around}, at, time, true)];
  }

  /* Returns links to the calls that launched a kernel, a memory copy or a memory set. */
  launch(track, span) {
    const at = track.start[span];
    return this.ends(track, span, true).flatMap((end) => {
      const python = this.caller(end.track, end.span, at, 'g');
      return [...python, link('launched by', python.length ? '' : 'g', end, at, this.start(end), true)];
    });
  }

  /* Returns links to the first work on GPUs that a Python call started, itself or through callees, up to
   * MAX_LAUNCHES. */
  launches(track, span) {
    const calls = track.tid ? this.callers.get(`${track.group.owner} ${track.tid}`) : undefined;
    const links = [];
    if (!calls) return links;
    const first = firstWhere(0, calls.count, (i) => calls.start[i] >= track.start[span]);
    for (let i = first; i < calls.count && calls.start[i] < track.end[span] && links.length < MAX_LAUNCHES; i++)
      links.push(...this.started(calls, i, links.length ? '' : 'g'));
    return links;
  }

  /* --- flows of the program --- */

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

/* Returns the task that a call resumes, and the resume's index, or undefined if the call is not a resume. */
function resumeOf(model, track, span) {
  const task = model.tasks[track.get('task', span) - 1];
  if (!task) return undefined;
  const {track: of} = task;
  return {task, resume: of ? firstWhere(0, of.count, (i) => of.start[i] >= track.start[span]) : -1};
}

/* Draws the arrows of the selection. PLACE: returns the vertical middle of a place's row on the canvas, or
 * undefined if it is not laid out. */
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
