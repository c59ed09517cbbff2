/* timeline.js: tracks below each other, over a time interval (the view) that can be moved and zoomed. The
 * timeline owns the view, the selection and a measured range; bands.js decides where each track is. */

const MIN_NS = 20;

class Timeline {
  constructor(model, search) {
    this.model = model;
    this.search = search;
    this.scroller = document.getElementById('rows');
    this.canvas = document.getElementById('rows-canvas');
    this.boxes = new Boxes();
    this.colors = nameColors(model.names);
    this.listeners = [];
    this.selected = null; // {track, span} or {track, mark}
    this.links = []; // links of the selection
    this.layout = new Bands(model);
    this.range = null; // [from, to]
    this.frames = 0;
    this.view = {from: 0, to: 1, width: 1};
    this.fitAll();
    this.layOut();
    this.scroller.addEventListener('scroll', () => this.change());
  }

  /* --- layout --- */

  /* Computes the bands from the top: each is a lane of tracks, or a heading. */
  layOut() {
    this.bands = this.layout.layOut();
    this.bandOfTrack = new Map();
    for (const band of this.bands) if (band.lane) for (const track of band.lane.tracks) this.bandOfTrack.set(track, band);
    this.height = this.layout.height;
    document.getElementById('rows-size').style.height = `${this.height}px`;
    this.change();
  }

  setOrder(order) {
    this.layout.order = order;
    this.layOut();
  }

  marksAt(band) {
    return band.y + HEAD;
  }

  rowsAt(band) {
    return band.y + HEAD + (band.lane.hasMarks ? MARKS : 0);
  }

  /* Returns undefined if the track is not shown. */
  bandOf(track) {
    return this.bandOfTrack.get(track);
  }

  /* Opens or closes what is below a heading. */
  toggle(band) {
    this.layout.toggle(band);
    this.layOut();
  }

  /* Shows a track that is behind a heading, or in a folded lane. */
  open(track) {
    if (!this.bandOf(track)) {
      this.layout.open(track);
      this.layOut();
    }
    const {lane} = this.bandOf(track);
    if (lane.folded) this.fold(lane);
  }

  /* Returns where a place's row begins on the canvas, or undefined if its track is not shown. */
  rowOf({track, span, mark}) {
    const band = this.bandOf(track);
    if (!band) return undefined;
    if (band.lane.folded) return band.y - this.scroller.scrollTop;
    return (mark ? this.marksAt(band) : this.rowsAt(band) + track.rowOf[span] * ROW) - this.scroller.scrollTop;
  }

  fold(lane) {
    lane.folded = !lane.folded;
    this.layOut();
  }

  /* --- the view --- */

  /* The largest view: the whole trace and a small margin. */
  get bounds() {
    const margin = Math.max(this.model.end, 1) * 0.01;
    return [-margin, Math.max(this.model.end, 1) + margin];
  }

  show(from, to) {
    const [least, most] = this.bounds;
    const size = Math.min(Math.max(to - from, MIN_NS), most - least);
    from = Math.min(Math.max((from + to - size) / 2, least), most - size);
    this.view.from = from;
    this.view.to = from + size;
    this.change();
  }

  fitAll() {
    this.show(...this.bounds);
  }

  zoom(factor, x) {
    const {from, to, width} = this.view;
    const at = from + (to - from) * x / width;
    const [least, most] = this.bounds;
    const size = Math.min(Math.max((to - from) * factor, MIN_NS), most - least);
    const left = at - size * x / width;
    this.show(left, left + size);
  }

  pan(pixels) {
    const {from, to, width} = this.view;
    const by = (to - from) / width * pixels;
    this.show(from + by, to + by);
  }

  time(x) {
    return this.view.from + (this.view.to - this.view.from) * x / this.view.width;
  }

  x(time) {
    return (time - this.view.from) / (this.view.to - this.view.from) * this.view.width;
  }

  /* --- the selection --- */

  select(selected, links) {
    this.selected = selected;
    this.links = links;
    this.range = null;
    this.change();
  }

  measure(from, to) {
    this.range = [Math.min(from, to), Math.max(from, to)];
    this.change();
  }

  /* Scrolls to a span or a mark; with `fits` it fills the view. */
  reveal({track, span, mark}, fits) {
    const from = mark ? mark.at : track.start[span], to = mark ? mark.at : track.end[span];
    const size = this.view.to - this.view.from, took = Math.max(to - from, MIN_NS);
    if (fits) this.show(from - took * 0.1, to + took * 0.1);
    else if (to < this.view.from || from > this.view.to || took < size / 400 || took > size)
      this.show((from + to) / 2 - took * 5, (from + to) / 2 + took * 5);
    this.open(track);
    const band = this.bandOf(track);
    const y = mark ? this.marksAt(band) : this.rowsAt(band) + track.rowOf[span] * ROW;
    const top = this.scroller.scrollTop, seen = this.scroller.clientHeight;
    if (y < top + RULER + HEAD || y > top + seen - 2 * ROW) this.scroller.scrollTop = y - seen / 3;
    this.change();
  }

  /* Fits a range into the view, marks it, and scrolls to a track. */
  showRange(from, to, track) {
    this.show(from - (to - from) * 0.02, to + (to - from) * 0.02);
    this.measure(from, to);
    if (track) this.open(track);
    if (track) this.scroller.scrollTop = Math.max(this.bandOf(track).y - RULER - GROUP, 0);
  }

  /* Returns the hit at a point of the canvas: {band}, and {track, span} or {track, mark} if there is one. */
  hit(x, y) {
    const below = y + this.scroller.scrollTop;
    const band = y < RULER ? null : this.bands.find((b) => below >= b.y && below < b.y + b.height);
    if (!band || !band.lane || band.lane.folded || below < band.y + HEAD) return {band};
    const track = band.lane.at(this.time(x - 1));
    if (band.lane.hasMarks && below < this.rowsAt(band)) {
      const mark = track.marks[firstWhere(0, track.marks.length, (i) => track.marks[i].at > this.time(x - 6))];
      return mark && mark.at < this.time(x + 6) ? {band, track, mark} : {band};
    }
    const row = Math.floor((below - this.rowsAt(band)) / ROW);
    if (row >= track.rows) return {band};
    return {band, ...this.spanAt(track, row, x)};
  }

  /* Returns the span at a pixel. A narrower span is also found one pixel beside it. */
  spanAt(track, row, x) {
    const {rowItems, rowAt, start, end} = track;
    const k = firstWhere(rowAt[row], rowAt[row + 1], (i) => end[rowItems[i]] > this.time(x - 1));
    const isThere = k < rowAt[row + 1] && start[rowItems[k]] <= this.time(x + 1);
    return isThere ? {track, span: rowItems[k]} : {};
  }

  /* --- drawing --- */

  /* Requests a draw in the next frame. */
  change() {
    if (this.asked) return;
    this.asked = requestAnimationFrame(() => {
      this.asked = 0;
      if (this.scroller.clientWidth) this.draw();
    });
  }

  draw() {
    const width = this.scroller.clientWidth, height = this.scroller.clientHeight;
    const context = fitCanvas(this.canvas, width, height);
    this.view.width = width;
    context.fillStyle = theme.back;
    context.fillRect(0, 0, width, height);
    this.boxes.clear();
    this.drawTracks(context, height);
    this.boxes.draw(context);
    this.drawOver(context, height);
    this.drawHeads(context, height);
    this.drawRuler(context, width);
    this.frames++;
    for (const listener of this.listeners) listener();
  }

  /* During a search, all names that do not match are dimmed. */
  get shades() {
    const {is} = this.search;
    return is ? this.colors.map((color, name) => (is[name] ? color : DIM_COLOR)) : this.colors;
  }

  * seen(height) {
    const top = this.scroller.scrollTop;
    for (const band of this.bands)
      if (band.y + band.height > top && band.y < top + height) yield [band, band.y - top];
  }

  drawTracks(context, height) {
    const colors = this.shades;
    for (const [band, y] of this.seen(height)) {
      const {lane} = band, {from, to, width} = this.view;
      if (!lane || lane.folded) continue;
      if (lane.values) drawValues(context, band.track, y + HEAD, VALUES, this.view);
      const rows = this.rowsAt(band) - this.scroller.scrollTop;
      const first = Math.max(0, Math.floor((RULER - rows) / ROW)), most = Math.ceil((height - rows) / ROW);
      for (const track of lane.within(from, to, (to - from) / width)) {
        if (track.marks.length) this.drawMarks(track, y + HEAD);
        const last = Math.min(track.rows, most);
        for (let row = first; row < last; row++) drawRow(this.boxes, track, row, rows + row * ROW, this.view, colors, this.model.names);
      }
    }
  }

  drawMarks({marks}, y) {
    const after = (from, time) => firstWhere(from, marks.length, (i) => marks[i].at >= time);
    for (let i = after(0, this.view.from); i < marks.length && marks[i].at < this.view.to;) {
      const x = this.x(marks[i].at), next = after(i + 1, this.time(x + 2));
      const room = next < marks.length ? this.x(marks[next].at) - x - 4 : 200;
      this.boxes.add(SPAN_COLOR, x - 2, y + 1, 4, MARKS - 3);
      if (room > MIN_LABEL) this.boxes.label(this.model.note(marks[i].note).name, x + 3, y + 6, room, SPAN_COLOR);
      i = next;
    }
  }

  /* Draws the selection and the range. */
  drawOver(context, height) {
    const y = this.selected ? this.rowOf(this.selected) : undefined;
    if (y !== undefined) {
      const {track, span, mark} = this.selected;
      const left = this.x(mark ? mark.at - 1 : track.start[span]), right = this.x(mark ? mark.at + 1 : track.end[span]);
      const from = Math.max(left - (mark ? 4 : 0), -4), to = Math.min(right + (mark ? 4 : 0), this.view.width + 4);
      context.strokeStyle = theme.select;
      context.lineWidth = 2;
      if (!this.bandOf(track).lane.folded) context.strokeRect(from, y, Math.max(to - from, 3), (mark ? MARKS : ROW) - 1);
      const middle = (place) => {
        const top = this.rowOf(place);
        return top === undefined ? undefined : top + (place.mark ? MARKS : ROW) / 2;
      };
      drawArrows(context, this.links, this.selected, middle, (time) => this.x(time));
    }
    if (this.range) {
      const left = this.x(this.range[0]), right = this.x(this.range[1]);
      context.fillStyle = theme.range;
      context.fillRect(left, RULER, right - left, height);
      context.fillStyle = theme.accent;
      context.fillRect(left, RULER, 1, height);
      context.fillRect(right, RULER, 1, height);
    }
  }

  headingText({heading, count, more, text}) {
    if (more) return this.layout.opened.has(more) ? `▾ ${text}` : `▸ ${text}`;
    if (!this.layout.closed.has(heading)) return `▾ ${heading}`;
    return `▸ ${heading}   ${showCount(count)} tracks`;
  }

  drawHeads(context, height) {
    context.textBaseline = 'middle';
    for (const [band, y] of this.seen(height)) {
      if (!band.lane) {
        context.fillStyle = theme.back;
        context.fillRect(0, y, this.view.width, GROUP);
        context.fillStyle = theme.faint;
        context.font = '600 11px system-ui, "DejaVu Sans", sans-serif';
        context.fillText(this.headingText(band), 8, y + GROUP / 2 + 1);
        continue;
      }
      // A track's heading stays visible while its rows are.
      const top = Math.min(Math.max(y, RULER), y + band.height - HEAD);
      const {lane} = band;
      context.fillStyle = theme.head;
      context.fillRect(0, top, this.view.width, HEAD - 1);
      context.fillStyle = theme.text;
      context.font = '12px system-ui, "DejaVu Sans", sans-serif';
      context.fillText(`${lane.folded ? '▸' : '▾'} ${lane.name}`, 8, top + HEAD / 2);
      const wide = context.measureText(`▾ ${lane.name}`).width;
      context.fillStyle = theme.faint;
      context.fillText(laneSize(lane), wide + 24, top + HEAD / 2);
    }
  }

  drawRuler(context, width) {
    const {from, to} = this.view;
    const least = (to - from) * 110 / width;
    const power = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 5, 10].map((times) => times * power).find((size) => size >= least);
    context.fillStyle = theme.back;
    context.fillRect(0, 0, width, RULER);
    context.font = '11px system-ui, "DejaVu Sans", sans-serif';
    context.textBaseline = 'middle';
    for (let at = Math.ceil(from / step) * step; at < to; at += step) {
      const x = Math.round(this.x(at));
      context.fillStyle = theme.line;
      context.fillRect(x, RULER - 6, 1, 6);
      context.fillStyle = theme.faint;
      context.fillText(showTick(at, step), x + 4, RULER / 2);
    }
    context.fillStyle = theme.line;
    context.fillRect(0, RULER - 1, width, 1);
  }
}

/* Returns the size of a lane's content, for its heading. */
function laneSize({tracks, pool}) {
  const [track] = tracks;
  if (track.values) return `${Number(track.low.toPrecision(4))} … ${Number(track.high.toPrecision(4))}`;
  if (track.isTask) return `${showCount(track.count)} resume${track.count === 1 ? '' : 's'}, ran ${showTime(track.ran)}`;
  const spans = tracks.reduce((sum, one) => sum + one.rowItems.length, 0);
  const threads = pool === null ? '' : `${showCount(tracks.length)} thread${tracks.length === 1 ? '' : 's'}, `;
  return `${threads}${showCount(spans)} ${track.tid && !track.isCalls ? 'calls' : 'spans'}`;
}

/* Formats a time with enough digits to distinguish it from the next tick. */
function showTick(at, step) {
  const size = Math.max(Math.abs(at), step);
  const [unit, factor] = size >= 1e9 ? ['s', 1e9] : size >= 1e6 ? ['ms', 1e6] : size >= 1e3 ? ['µs', 1e3] : ['ns', 1];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / factor) - 1e-9));
  return `${(at / factor).toFixed(digits)} ${unit}`;
}
