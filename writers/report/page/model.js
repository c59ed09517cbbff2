/* model.js: the page's model of a trace. A track belongs to a group of a process, and holds spans that nest or
 * are placed in rows, marks, or a counter. The owner of a process is the index of its trace's section. Times
 * are nanoseconds since the first time of all sections. */

const FLAGS = [[1, 'began before the trace'], [2, 'still open when the trace ended'], [4, 'cut so that calls nest'],
               [8, 'start or end inferred'], [64, 'a further part of a call that was cut']];
const CONTINUED = 64, THROUGHOUT = 1 | 2;

const OPERATOR = 1, ANNOTATION = 2; // kinds of names, beside calls and spans

const THREADS = 'Threads'; // the first group
const STREAMS = 'streams'; // the group of a GPU's work

/* Control characters, and characters that are invisible or change the direction of text. Joiners are not
 * included: emoji and some scripts need them. */
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
const SHORT = {'\n': '\\n', '\r': '\\r', '\t': '\\t'};

/* Returns a program's own text on one line, as the page shows and searches it. */
function visible(text) {
  return text.replace(HIDDEN, (c) => SHORT[c] ?? `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

class Track {
  constructor(group, name, count) {
    this.group = group;
    this.name = visible(name);
    this.count = 0; // of spans, in the order of their starts, outer before inner
    this.start = new Float64Array(count);
    this.end = new Float64Array(count);
    this.own = new Float64Array(count);
    this.nameOf = new Uint32Array(count);
    this.depth = new Uint32Array(count);
    this.parent = new Int32Array(count); // -1: no parent
    this.more = {}; // columns that few tracks have: line, flags, note, task, thread, call, forward
    this.collections = new Map(); // by span: [generation, collected, uncollectable]
    this.marks = []; // {at, note}, in time order
    this.values = null; // for a counter: [time, value] in time order, between low and high
    this.deepest = 0;
    this.hasOperators = false; // or annotations
    this.first = this.last = 0; // the times between which it has spans and marks
    this.tid = 0; // id of the thread, also for its CUDA calls
    this.isCalls = false; // the spans are CUDA calls
    this.flow = null; // by span: a CUDA call and the work it started have the same number; 0: none
    this.isTask = false; // the spans are also spans of threads, so they are not counted twice
    this.ran = 0; // total running time of a task
  }

  column(name, span, value) {
    this.more[name] ??= new Uint32Array(this.start.length);
    this.more[name][span] |= value;
  }

  get(name, span) {
    return this.more[name] ? this.more[name][span] : 0;
  }

  /* Opens a span. close sets its end. */
  open(name, at, depth, parent) {
    const span = this.count++;
    this.start[span] = at;
    this.nameOf[span] = name;
    this.depth[span] = depth;
    this.parent[span] = parent;
    if (depth >= this.deepest) this.deepest = depth + 1;
    return span;
  }

  close(span, at) {
    const took = at - this.start[span];
    this.end[span] = at;
    this.own[span] += took;
    if (this.parent[span] >= 0) this.own[this.parent[span]] -= took;
  }

  /* Called after the last span. */
  finish() {
    this.layOut(null);
    if (this.count) this.first = this.start[0];
    for (let row = 0; row < this.rows; row++) this.last = Math.max(this.last, this.end[this.rowItems[this.rowAt[row + 1] - 1]]);
    return this;
  }

  /* Adds marks, which are sorted by time. */
  addMarks(marks) {
    this.marks = marks;
    if (!marks.length) return;
    this.first = this.count ? Math.min(this.first, marks[0].at) : marks[0].at;
    this.last = Math.max(this.last, marks[marks.length - 1].at);
  }

  /* How much happened in it, compared with others of its group. */
  get busy() {
    return this.isTask ? this.ran : this.count;
  }

  /* Sorts the spans by row, so that visible spans are found by binary search. HIDDEN: by name, whether its spans
   * are left out; what is inside them moves up. null: none is left out. */
  layOut(hidden) {
    this.hidden = hidden;
    this.rowOf = this.depth; // by span
    this.shownParent = this.parent; // the innermost span around it that is not left out
    this.rows = this.deepest;
    if (hidden) this.moveUp();
    const {count, rowOf, nameOf, rows} = this;
    const rowAt = this.rowAt = new Uint32Array(rows + 1);
    for (let i = 0; i < count; i++) if (hidden === null || !hidden[nameOf[i]]) rowAt[rowOf[i] + 1]++;
    for (let row = 0; row < rows; row++) rowAt[row + 1] += rowAt[row];
    const rowItems = this.rowItems = new Uint32Array(rowAt[rows]), next = rowAt.slice();
    for (let i = 0; i < count; i++) if (hidden === null || !hidden[nameOf[i]]) rowItems[next[rowOf[i]]++] = i;
    return this;
  }

  moveUp() {
    const {count, parent, nameOf, hidden} = this;
    this.rowOf = new Uint32Array(count);
    this.shownParent = new Int32Array(count);
    this.rows = 0;
    for (let i = 0; i < count; i++) {
      const around = parent[i] >= 0 && hidden[nameOf[parent[i]]] ? this.shownParent[parent[i]] : parent[i];
      this.shownParent[i] = around;
      this.rowOf[i] = around < 0 ? 0 : this.rowOf[around] + 1;
      if (!hidden[nameOf[i]] && this.rowOf[i] >= this.rows) this.rows = this.rowOf[i] + 1;
    }
  }
}

class Model {
  constructor() {
    this.tracks = [];
    this.names = []; // {text, label, file, line, kind}: kind is python, c, span, task, operator or annotation
    this.kinds = null; // by name: OPERATOR, ANNOTATION or 0; null: there is neither
    this.forwards = []; // functions of forward operators
    this.steps = []; // {start, end, number, name, track, flags}
    this.hidesOperators = false;
    this.notes = []; // {name, args, value, flow}
    this.sections = []; // the JSON of each trace section
    this.sides = []; // by trace section, if two recordings are compared: before or after
    this.alike = null; // by name, if so: the number that names of both recordings share
    this.tasks = []; // {note, count of resumes, track or null}
    this.tasksLeftOut = {count: 0, ran: 0}; // tasks without a track
    this.memories = [];
    this.sources = new Sources(this);
    this.end = 0;
    this.known = new Map();
  }

  /* Returns the number of a name; equal names of all sections have the same number. LABEL: the text that is
   * drawn; by default it is derived from TEXT. */
  name(text, file, line, kind, label) {
    [text, file] = [visible(text), visible(file)]; // so neither contains \0
    const key = `${kind}\0${line}\0${file}\0${text}`;
    let number = this.known.get(key);
    if (number === undefined) {
      const place = `${file}(${line}): `; // as in "file.py(8): inner"
      label = visible(label ?? (file && text.startsWith(place) ? text.slice(place.length) : text));
      number = this.names.push({text, file, line, kind, label}) - 1;
      this.known.set(key, number);
    }
    return number;
  }

  /* Called after the last section. */
  finish() {
    if (this.sides.length) this.alike = this.sharedNames();
    const kinds = Uint8Array.from(this.names, ({kind}) => (kind === 'operator' ? OPERATOR : kind === 'annotation' ? ANNOTATION : 0));
    if (!kinds.some((kind) => kind)) return this;
    this.kinds = kinds;
    for (const track of this.tracks)
      track.hasOperators = !track.isTask && track.nameOf.subarray(0, track.count).some((name) => kinds[name]);
    return this;
  }

  /* Returns for each name the first with the same function and file, since lines change between recordings. */
  sharedNames() {
    const first = new Map();
    return Uint32Array.from(this.names, ({label, file, kind}, number) => {
      const key = `${kind}\0${file}\0${label}`;
      if (!first.has(key)) first.set(key, number);
      return first.get(key);
    });
  }

  /* Shows or hides the layer of operators. */
  hideOperators(hides) {
    const hidden = hides ? this.kinds.map((kind) => Number(kind === OPERATOR)) : null;
    this.hidesOperators = hides;
    for (const track of this.tracks) if (track.hasOperators) track.layOut(hidden);
  }

  /* Adds a track of spans {name, start, end, note, flags, flow} that may overlap. Each span is placed in the
   * first free row. */
  addSpans(group, name, spans) {
    const track = new Track(group, name, spans.length);
    const ends = [];
    spans.sort((a, b) => a.start - b.start || b.end - a.end);
    for (const span of spans) {
      let row = ends.findIndex((end) => end <= span.start);
      if (row < 0) row = ends.length;
      ends[row] = Math.max(span.end, span.start);
      const number = track.open(span.name, span.start, row, -1);
      track.close(number, ends[row]);
      if (span.flags) track.column('flags', number, span.flags);
      if (span.note) track.column('note', number, span.note);
      if (span.flow) (track.flow ??= new Float64Array(spans.length))[number] = span.flow;
    }
    this.tracks.push(track.finish());
    return track;
  }

  addCounter(group, name, values) {
    const track = new Track(group, name, 0).finish();
    track.values = values.filter(([, value]) => Number.isFinite(value)).sort((a, b) => a[0] - b[0]);
    track.low = track.values.reduce((low, [, value]) => Math.min(low, value), 0);
    track.high = track.values.reduce((high, [, value]) => Math.max(high, value), 0);
    if (track.values.length) this.tracks.push(track);
  }

  /* Adds a note that spans and marks refer to. Returns its number; 0 means no note. */
  addNote(name, args, value, flow) {
    return this.notes.push({name: visible(name), args: visible(args), value, flow});
  }

  note(number) {
    return this.notes[number - 1];
  }
}

/* Returns the first index in [from, to) for which `is` holds. It must hold for all later indices too. */
function firstWhere(from, to, is) {
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (is(middle)) to = middle;
    else from = middle + 1;
  }
  return from;
}

function showTime(ns) {
  const size = Math.abs(ns);
  if (size >= 1e9) return `${(ns / 1e9).toFixed(size >= 1e11 ? 1 : 3)} s`;
  if (size >= 1e6) return `${(ns / 1e6).toFixed(3)} ms`;
  if (size >= 1e3) return `${(ns / 1e3).toFixed(3)} µs`;
  return `${Math.round(ns)} ns`;
}

function showBytes(bytes) {
  const size = Math.abs(bytes);
  for (const [unit, factor] of [['GB', 1e9], ['MB', 1e6], ['kB', 1e3]])
    if (size >= factor) return `${(bytes / factor).toFixed(2)} ${unit}`;
  return `${bytes} B`;
}

function showCount(count) {
  return Math.round(count).toLocaleString('en');
}

function element(name, text, attributes) {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = text;
  return Object.assign(made, attributes);
}
