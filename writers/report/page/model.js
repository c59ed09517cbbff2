/* model.js: a trace as the page has it. A track belongs to a group of a process, and holds spans that nest or lie
 * in rows, marks, or a counter. The process's owner is the number of its trace's section. Times are nanoseconds since the first of all sections. */

const FLAGS = [[1, 'began before the trace'], [2, 'ended by the trace’s end'], [4, 'cut so that calls nest'],
               [8, 'start or end inferred']];

const THREADS = 'Threads'; // of groups the first

/* Controls, and what is not seen or turns the text around it round. Joiners stay: emoji and some scripts need them. */
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
const SHORT = {'\n': '\\n', '\r': '\\r', '\t': '\\t'};

/* A program's own name on one line, as the page shows and finds it. */
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
    this.parent = new Int32Array(count); // -1: none
    this.more = {}; // columns that few tracks have: line, flags, note
    this.collections = new Map(); // by span: [generation, collected, uncollectable]
    this.marks = []; // {at, note}, by time
    this.values = null; // of a counter: [time, value], from low to high
    this.rows = 0;
    this.folded = false;
    this.tid = 0; // of a thread, and of its calls of CUDA
    this.isCalls = false; // of CUDA
    this.flow = null; // by span: a call of CUDA, and what it started, have the same number; 0: none
    this.isTask = false; // its spans are a thread's as well: they are not counted twice
    this.ran = 0; // a task, in all
  }

  column(name, span, value) {
    this.more[name] ??= new Uint32Array(this.start.length);
    this.more[name][span] |= value;
  }

  get(name, span) {
    return this.more[name] ? this.more[name][span] : 0;
  }

  /* Opens a span; its end comes later. */
  open(name, at, depth, parent) {
    const span = this.count++;
    this.start[span] = at;
    this.nameOf[span] = name;
    this.depth[span] = depth;
    this.parent[span] = parent;
    if (depth >= this.rows) this.rows = depth + 1;
    return span;
  }

  close(span, at) {
    const took = at - this.start[span];
    this.end[span] = at;
    this.own[span] += took;
    if (this.parent[span] >= 0) this.own[this.parent[span]] -= took;
  }

  /* Once all came: the spans of each row, so that what is to be drawn is found by halving. */
  finish() {
    this.rowAt = new Uint32Array(this.rows + 1);
    this.rowItems = new Uint32Array(this.count);
    for (let i = 0; i < this.count; i++) this.rowAt[this.depth[i] + 1]++;
    for (let row = 0; row < this.rows; row++) this.rowAt[row + 1] += this.rowAt[row];
    const next = this.rowAt.slice();
    for (let i = 0; i < this.count; i++) this.rowItems[next[this.depth[i]]++] = i;
    return this;
  }
}

class Model {
  constructor() {
    this.tracks = [];
    this.names = []; // {text, label, file, line, kind}
    this.notes = []; // {name, args, value, flow}
    this.sections = []; // what each says of itself
    this.tasks = []; // {note, count of resumes, track or null}
    this.tasksLeftOut = {count: 0, ran: 0}; // that have no track
    this.memories = [];
    this.end = 0;
    this.known = new Map();
  }

  /* The number of a name; the same one for the same in all sections. LABEL: what is drawn, unless the text says. */
  name(text, file, line, kind, label) {
    [text, file] = [visible(text), visible(file)]; // so neither has a \0
    const key = `${kind}\0${line}\0${file}\0${text}`;
    let number = this.known.get(key);
    if (number === undefined) {
      const place = `${file}(${line}): `; // of "file.py(8): inner"
      label = visible(label ?? (file && text.startsWith(place) ? text.slice(place.length) : text));
      number = this.names.push({text, file, line, kind, label}) - 1;
      this.known.set(key, number);
    }
    return number;
  }

  /* A track of spans {name, start, end, note, flags, flow} that may overlap: each lies in the first row that is free. */
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

  /* A note that spans and marks refer to; 0 is none. */
  addNote(name, args, value, flow) {
    return this.notes.push({name: visible(name), args: visible(args), value, flow});
  }

  note(number) {
    return this.notes[number - 1];
  }
}

/* The first place in [from, to) for which `is` holds, where it holds for all behind it. */
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
