/* tasks.js: asyncio tasks. A resume is a call of its thread; here each task also gets a track of its own with
 * its resumes. There are at most as many tracks as in other formats; if there are more tasks, those that ran
 * longest get one. */

const MAX_TASKS = 10000;

/* Resumes in the order of decoding: the thread's track, its span, and the note with the task's name. */
class Resumes {
  constructor() {
    this.tracks = [];
    this.spans = [];
    this.notes = [];
  }

  add(track, span, note) {
    this.tracks.push(track);
    this.spans.push(span);
    this.notes.push(note);
  }

  /* Returns the tasks {note, ran, items}, in the order of their first resumes. */
  byTask() {
    const tasks = new Map();
    this.notes.forEach((note, i) => {
      if (!tasks.has(note)) tasks.set(note, {note, ran: 0, items: []});
      const task = tasks.get(note), {start, end} = this.tracks[i];
      task.ran += end[this.spans[i]] - start[this.spans[i]];
      task.items.push(i);
    });
    const at = (i) => this.tracks[i].start[this.spans[i]];
    for (const {items} of tasks.values()) items.sort((a, b) => at(a) - at(b));
    return [...tasks.values()].sort((a, b) => at(a.items[0]) - at(b.items[0]));
  }
}

/* Makes the track of a task in GROUP. Its columns `thread` and `call` identify the call of a resume. NUMBERS:
 * the indices of the threads' tracks. */
function taskTrack(model, group, task, resumes, numbers) {
  const {name, args: coroutine} = model.note(task.note);
  const track = new Track(group, `${name} ${coroutine}`.trim(), task.items.length);
  const number = model.name(track.name, '', 0, 'task', coroutine || name);
  track.isTask = true;
  track.ran = task.ran;
  for (const i of task.items) {
    const from = resumes.tracks[i], call = resumes.spans[i];
    const span = track.open(number, from.start[call], 0, -1);
    track.close(span, from.end[call]);
    track.column('thread', span, numbers.get(from));
    track.column('call', span, call);
  }
  return track.finish();
}

/* Adds the tracks of a process's tasks after the existing tracks. */
function addTasks(model, process, resumes) {
  const tasks = resumes.byTask();
  const many = `Tasks: ${showCount(MAX_TASKS)} of ${showCount(tasks.length)}, those that ran longest`;
  const group = {...process, name: tasks.length > MAX_TASKS ? many : 'Tasks'};
  const numbers = new Map(model.tracks.map((track, i) => [track, i]));
  const shown = new Set(tasks.slice().sort((a, b) => b.ran - a.ran).slice(0, MAX_TASKS));
  for (const task of tasks) {
    const number = model.tasks.push({note: task.note, count: task.items.length, track: null});
    for (const i of task.items) resumes.tracks[i].column('task', resumes.spans[i], number);
    if (!shown.has(task)) {
      model.tasksLeftOut.count++;
      model.tasksLeftOut.ran += task.ran;
      continue;
    }
    const track = taskTrack(model, group, task, resumes, numbers);
    model.tasks[number - 1].track = track;
    model.tracks.push(track);
  }
}

/* --- awaiting --- */

function callOf(model, track, resume) {
  return [model.tracks[track.get('thread', resume)], track.get('call', resume)];
}

function lastChild({count, depth, parent}, span) {
  let last = -1;
  for (let i = span + 1; i < count && depth[i] > depth[span]; i++) if (parent[i] === span) last = i;
  return last;
}

/* Returns the coroutines that a task had awaited when RESUME began: "handle:12 › read:40", outermost first, or
 * '' if the task began there. A coroutine continues where it waited. Its first action is to resume the
 * coroutine that it awaits, which was its last call before. */
function awaited(model, track, resume) {
  if (resume <= 0 || resume >= track.count) return '';
  let [before, last] = callOf(model, track, resume - 1);
  let [now, span] = callOf(model, track, resume);
  const parts = [];
  for (let line = now.get('line', span); line; line = now.get('line', span)) {
    parts.push(`${model.names[now.nameOf[span]].label}:${line}`);
    last = lastChild(before, last);
    span++;
    if (last < 0 || now.parent[span] !== span - 1 || now.nameOf[span] !== before.nameOf[last]) break;
  }
  return parts.join(' › ');
}
