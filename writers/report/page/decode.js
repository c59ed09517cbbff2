/* decode.js: decodes the sections of the page, each a script element with text, into the model. Their kinds:
 * trace (from writers/report/report.c), tracks (JSON, for other tools that add tracks), memory (tables as
 * JSON), source (lines of functions as JSON). */

const CLOSE = 0, CALL = 1, SPAN = 2, MARK = 3, COUNTER = 4, CLOSE_MORE = 5, CALL_MORE = 6, TASK = 7;
const IS_COLLECTION = 1 << 8, HAS_FORWARD = 1 << 9;
const NOTE_MARK = 1, NOTE_COUNTER = 4;

async function unpack(section) {
  const text = atob(section.textContent.trim());
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  section.remove(); // frees the text
  if (section.dataset.pack !== 'gzip') return bytes;
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  /* Numbers may have more than 32 bits, which shifts cannot handle. */
  varint() {
    const bytes = this.bytes;
    let byte = bytes[this.at++];
    let value = byte & 0x7F;
    for (let shift = 7; byte > 0x7F && shift < 28; shift += 7) {
      byte = bytes[this.at++];
      value |= (byte & 0x7F) << shift;
    }
    for (let factor = 2 ** 28; byte > 0x7F; factor *= 128) {
      byte = bytes[this.at++];
      value += (byte & 0x7F) * factor;
    }
    return value;
  }
}

/* A thread's part of a section: a track, and its open spans. */
class TrackDecoder {
  constructor(track, start) {
    this.track = track;
    this.at = start;
    this.open = []; // open spans
  }

  push(name) {
    const parent = this.open.length ? this.open[this.open.length - 1] : -1;
    const span = this.track.open(name, this.at, this.open.length, parent);
    this.open.push(span);
    return span;
  }

  finish() {
    const {track} = this;
    track.finish().addMarks(track.marks);
    return track;
  }

  pop() {
    const span = this.open.pop();
    this.track.close(span, this.at);
    return span;
  }
}

class TraceSection {
  /* NAME, TITLE, COMMAND: of the trace, its process and its command line, if the tool that added the section knows
   * them. */
  constructor(model, bytes, {name, title, command}) {
    this.model = model;
    this.reader = new Reader(bytes);
    this.blocks = [];
    for (let size = this.reader.varint(); size; size = this.reader.varint()) {
      const thread = this.reader.varint();
      this.blocks.push([thread, this.reader.at, size]);
      this.reader.at += size;
    }
    this.json = JSON.parse(new TextDecoder().decode(bytes.subarray(this.reader.at)));
    if (name) this.json.name = name;
    this.json.writtenProcess = `${this.json.process} ${this.json.pid}`; // as other sections name it
    if (title) this.json.process = title;
    this.json.command = command;
  }

  /* OFFSET: from the page's first time to the section's first time. */
  decode(offset) {
    const {model, json} = this;
    this.offset = offset;
    this.counters = new Map();
    this.names = [];
    this.notes = [];
    const kinds = new Map();
    for (const number of json.operators ?? []) kinds.set(number, 'operator');
    for (const number of json.annotations ?? []) kinds.set(number, 'annotation');
    for (const [number, text, file, line] of json.names)
      this.names[number] = model.name(text, file, line, kinds.get(number) ?? (file ? 'python' : 'c'));
    this.forwards = [0, ...['(not recorded)', ...json.forwards ?? []].map((text) => model.forwards.push(visible(text)))];
    for (const [number, name, args, value, flow] of json.notes) this.notes[number] = model.addNote(name, args, value, flow);
    this.unknown = model.name('unknown', '', 0, 'c');
    const {owner} = this, side = model.sides[owner];
    const process = json.shownProcess = visible(`${side ? `${side}: ` : ''}${json.process} ${json.pid}`);
    const decoders = new Map();
    this.resumes = new Resumes();
    for (const {id, name, tid, group, spans, start} of json.tracks) {
      const track = new Track({process, owner, name: group || THREADS}, tid && !group ? `${name}  ${tid}` : name, spans);
      track.tid = tid;
      decoders.set(id, new TrackDecoder(track, start + offset));
    }
    for (const [thread, from, size] of this.blocks) this.events(decoders.get(thread), from, from + size);
    for (const decoder of decoders.values()) while (decoder.open.length) decoder.pop();
    const tracks = [...decoders.values()].map((decoder) => decoder.finish());
    for (const isThread of [true, false])
      for (const track of tracks) if ((track.group.name === THREADS) === isThread) model.tracks.push(track);
    for (const [start, end, number, name, thread, flags] of json.steps ?? [])
      model.steps.push({start: start + offset, end: end + offset, number, name: visible(name), track: decoders.get(thread)?.track, owner, flags});
    this.loose(process);
    for (const [name, values] of this.counters) model.addCounter({process, owner, name: 'Counters'}, name, values);
    addTasks(model, {process, owner}, this.resumes);
    model.end = Math.max(model.end, json.end + offset);
    json.offset = offset;
    model.sections.push(json);
  }

  events(decoder, from, to) {
    const {reader, names} = this;
    const track = decoder.track;
    reader.at = from;
    while (reader.at < to) {
      const event = reader.varint();
      const what = event % 8;
      decoder.at += Math.floor(event / 8);
      if (what === CLOSE) {
        decoder.pop();
      } else if (what === CALL) {
        decoder.push(names[reader.varint()] ?? this.unknown);
      } else if (what === CLOSE_MORE) {
        this.closeMore(decoder);
      } else {
        const number = reader.varint();
        if (what === CALL_MORE) {
          const span = decoder.push(names[number] ?? this.unknown);
          track.column('line', span, reader.varint());
          const flags = reader.varint();
          track.column('flags', span, flags % IS_COLLECTION);
          if (flags >= HAS_FORWARD) track.column('forward', span, this.forwards[reader.varint()] ?? 0);
        } else if (what === SPAN) {
          const note = this.notes[number];
          track.column('note', decoder.push(this.spanName(note)), note);
        } else if (what === MARK) {
          track.marks.push({at: decoder.at, note: this.notes[number]});
        } else if (what === COUNTER) {
          this.value(this.notes[number], decoder.at);
        } else if (what === TASK) {
          this.resumes.add(track, decoder.open[decoder.open.length - 1], this.notes[number]);
        }
      }
    }
  }

  closeMore(decoder) {
    const {reader} = this;
    const span = decoder.pop();
    const flags = reader.varint();
    if (flags % IS_COLLECTION) decoder.track.column('flags', span, flags % IS_COLLECTION);
    if (flags >= IS_COLLECTION)
      decoder.track.collections.set(span, [reader.varint(), reader.varint(), reader.varint()]);
  }

  spanName(note) {
    return this.model.name(this.model.note(note).name, '', 0, 'span');
  }

  value(note, at) {
    const {name, value} = this.model.note(note);
    if (!this.counters.has(name)) this.counters.set(name, []);
    this.counters.get(name).push([at, value]);
  }

  /* Adds the notes beside the calls. */
  loose(process) {
    const spans = [], marks = [];
    for (const [number, what, start, end, , , flags] of this.json.loose) {
      const note = this.notes[number];
      if (what === NOTE_COUNTER) this.value(note, start + this.offset);
      else if (what === NOTE_MARK) marks.push({at: start + this.offset, note});
      else spans.push({name: this.spanName(note), start: start + this.offset, end: end + this.offset, note, flags});
    }
    if (!spans.length && !marks.length) return;
    this.model.addSpans({process, owner: this.owner, name: 'Spans'}, 'spans beside the calls', spans).addMarks(marks);
  }
}

/* JSON for other tools that add tracks, such as GPU streams: docs/report.md. */
class TracksSection {
  constructor(model, bytes) {
    this.model = model;
    this.json = JSON.parse(new TextDecoder().decode(bytes));
  }

  decode(offset) {
    const {model, json} = this;
    const note = (name, args) => model.addNote(name, args ? JSON.stringify(args).slice(1, -1) : '', null, '0');
    const own = model.sections[this.owner];
    const isOwn = own && (json.process ?? own.writtenProcess) === own.writtenProcess;
    const process = isOwn ? own.shownProcess : visible(json.process ?? '');
    for (const {group, name, tid = 0, spans = [], marks = [], values} of json.tracks) {
      const where = {process, owner: this.owner, name: visible(group)};
      if (values) {
        model.addCounter(where, name, values.map(([at, value]) => [at + offset, value]));
        continue;
      }
      const track = model.addSpans(where, name, spans.map(([text, start, end, args, flow]) => (
        {name: model.name(text, '', 0, 'span'), start: start + offset, end: end + offset, note: note(text, args), flow})));
      track.tid = tid;
      track.isCalls = tid > 0;
      track.addMarks(marks.map(([text, at, args]) => ({at: at + offset, note: note(text, args)})).sort((a, b) => a.at - b.at));
      for (const span of spans) model.end = Math.max(model.end, span[2] + offset);
    }
  }
}

/* Reads all sections of the page. Tracks belong to the trace before them. */
async function readSections() {
  const model = new Model();
  const parts = [];
  let traces = 0;
  for (const section of document.querySelectorAll('script.section')) {
    const kind = section.dataset.kind;
    const bytes = await unpack(section);
    if (kind === 'memory') model.memories.push(JSON.parse(new TextDecoder().decode(bytes)));
    if (kind === 'source') model.sources.add(JSON.parse(new TextDecoder().decode(bytes)).files);
    if (kind === 'trace' && section.dataset.side) model.sides.push(section.dataset.side);
    if (kind === 'trace') traces++;
    if (kind === 'trace') parts.push(new TraceSection(model, bytes, section.dataset));
    else if (kind === 'tracks') parts.push(new TracksSection(model, bytes));
    else continue;
    parts[parts.length - 1].owner = traces - 1;
  }
  const firsts = parts.map((part) => BigInt(part.json.first_ns));
  const first = firsts.reduce((a, b) => (b < a ? b : a), firsts[0] ?? 0n);
  // Two recordings that are compared begin at the same time.
  const own = new Map(parts.map((part, i) => [part.owner, firsts[i]]).reverse());
  parts.forEach((part, i) => part.decode(Number(firsts[i] - (model.sides.length ? own.get(part.owner) : first))));
  return model.finish();
}
