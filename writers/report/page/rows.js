/* rows.js: draws spans. The cost of a row depends on its pixels, not on its spans: spans narrower than a pixel
 * are drawn once for that pixel, and the next span after it is found by binary search. */

const ROW = 17, FONT = '11px ui-monospace, "DejaVu Sans Mono", monospace', LETTER = 6.7, MIN_LABEL = 26;

/* The rectangles of one frame, by colour: changing the colour of a canvas is slow. */
class Boxes {
  constructor() {
    this.lists = [];
    this.labels = [];
    this.count = 0;
  }

  clear() {
    for (const list of this.lists) if (list) list.length = 0;
    this.labels.length = 0;
    this.count = 0;
  }

  add(color, x, y, width, height) {
    (this.lists[color] ??= []).push(x, y, width, height);
    this.count++;
  }

  label(text, x, y, width, color) {
    this.labels.push({text, x, y, width, color});
  }

  draw(context) {
    this.lists.forEach((list, color) => {
      if (!list.length) return;
      context.fillStyle = palette[color];
      for (let i = 0; i < list.length; i += 4) context.fillRect(list[i], list[i + 1], list[i + 2], list[i + 3]);
    });
    context.font = FONT;
    context.textBaseline = 'middle';
    for (const {text, x, y, width, color} of this.labels) {
      const room = Math.floor((width - 6) / LETTER);
      context.fillStyle = color === DIM_COLOR ? theme.faint : theme.label;
      context.fillText(text.length > room ? `${text.slice(0, room - 1)}…` : text, x + 3, y);
    }
  }
}

/* Returns the first index from FROM on in a row whose span ends after TIME. It is usually near FROM. */
function skipTo(track, from, to, time) {
  const {rowItems, end} = track;
  let step = 1;
  while (from + step < to && end[rowItems[from + step]] <= time) step *= 2;
  return firstWhere(from, Math.min(from + step, to), (k) => end[rowItems[k]] > time);
}

/* VIEW: {from, to} in ns, width in pixels. COLOR: by number of a name. */
function drawRow(boxes, track, row, y, view, color, names) {
  const {rowItems, start, end, nameOf} = track;
  const last = track.rowAt[row + 1];
  const scale = view.width / (view.to - view.from);
  let k = firstWhere(track.rowAt[row], last, (i) => end[rowItems[i]] > view.from);
  let run = -1, runEnd = 0, runColor = 0; // adjacent pixels of short spans with the same colour
  const endRun = () => {
    if (run >= 0) boxes.add(runColor, run, y, runEnd - run, ROW - 1);
    run = -1;
  };
  while (k < last && start[rowItems[k]] < view.to) {
    const span = rowItems[k];
    const left = Math.max(0, (start[span] - view.from) * scale);
    const right = Math.min(view.width, (end[span] - view.from) * scale);
    const drawn = color[nameOf[span]];
    if (right - left < 1) {
      const pixel = Math.floor(left);
      if (run >= 0 && (drawn !== runColor || pixel > runEnd)) endRun();
      if (run < 0) run = pixel;
      runEnd = pixel + 1;
      runColor = drawn;
      k = skipTo(track, k + 1, last, view.from + (pixel + 1) / scale);
      continue;
    }
    endRun();
    boxes.add(drawn, left, y, Math.max(right - left - (right - left > 3 ? 1 : 0), 1), ROW - 1);
    if (right - left > MIN_LABEL) boxes.label(names[nameOf[span]].label, left, y + ROW / 2, right - left, drawn);
    k++;
  }
  endRun();
}

/* Draws a counter as steps, with the last value of each pixel. */
function drawValues(context, {values, low, high}, y, height, view) {
  const scale = view.width / (view.to - view.from);
  const place = (value) => y + height - 3 - (value - low) / (high - low || 1) * (height - 6);
  const base = place(0);
  let k = Math.max(firstWhere(0, values.length, (i) => values[i][0] > view.from) - 1, 0);
  context.fillStyle = palette[SPAN_COLOR];
  while (k < values.length && values[k][0] < view.to) {
    const left = Math.max(0, (values[k][0] - view.from) * scale);
    const next = firstWhere(k + 1, values.length, (i) => (values[i][0] - view.from) * scale >= left + 1);
    const right = next < values.length ? Math.min(view.width, (values[next][0] - view.from) * scale) : view.width;
    const top = place(values[next - 1][1]);
    context.fillRect(left, Math.min(top, base), Math.max(right - left, 1), Math.max(Math.abs(base - top), 1));
    k = next;
  }
}

/* Sizes a canvas in the screen's own pixels. Returns its context, scaled so that units are CSS pixels. */
function fitCanvas(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const across = Math.round(width * ratio), down = Math.round(height * ratio);
  if (canvas.width !== across || canvas.height !== down) {
    canvas.width = across;
    canvas.height = down;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext('2d', {alpha: false});
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}
