/* minimap.js: the whole trace in a strip, with a band for each lane if there is space, as high as the calls
 * are deep at each time. A window marks the part that the timeline shows; it can be dragged and resized at its
 * edges. */

const EDGE = 6, MIN_WINDOW = 3, MAX_BANDS = 200;

class Minimap {
  constructor(timeline) {
    this.timeline = timeline;
    this.canvas = document.getElementById('minimap');
    timeline.listeners.push(() => this.draw());
    this.canvas.addEventListener('pointerdown', (event) => this.grab(event));
    this.canvas.addEventListener('pointermove', (event) => this.move(event));
    this.canvas.addEventListener('pointerup', () => { this.grip = null; });
  }

  /* Adds the depth of a track at each pixel, as a fraction of ROWS. */
  addDepths(deep, track, rows, from, scale) {
    const {hidden, nameOf, rowOf} = track, width = deep.length;
    for (let i = 0; i < track.count; i++) {
      if (hidden !== null && hidden[nameOf[i]]) continue;
      const first = Math.max(0, Math.floor((track.start[i] - from) * scale));
      const last = Math.min(width - 1, Math.floor((track.end[i] - from) * scale));
      const share = (rowOf[i] + 1) / rows;
      for (let x = first; x <= last; x++) if (deep[x] < share) deep[x] = share;
    }
  }

  /* Returns the depth of a lane at each pixel, as a fraction of its maximum depth. */
  depths({tracks, rows}, width, from, scale) {
    const deep = new Float32Array(width);
    for (const track of tracks) this.addDepths(deep, track, rows, from, scale);
    return deep;
  }

  /* Draws the background, once for each size, theme and choice of layers. */
  background(width, height) {
    const key = `${width} ${height} ${window.devicePixelRatio} ${theme.back} ${this.timeline.model.hidesOperators} ${this.timeline.layout.order}`;
    if (this.key === key) return this.image;
    const lanes = this.timeline.layout.groups.flatMap((group) => this.timeline.layout.split(group)[0])
      .filter(({tracks: [track]}) => track.count && !track.isTask).slice(0, MAX_BANDS);
    const [from, to] = this.timeline.bounds;
    const scale = width / (to - from), band = (height - 4) / Math.max(lanes.length, 1);
    this.key = key;
    this.image = document.createElement('canvas');
    const context = fitCanvas(this.image, width, height);
    context.fillStyle = theme.back;
    context.fillRect(0, 0, width, height);
    context.fillStyle = theme.accent;
    lanes.forEach((lane, number) => {
      const bottom = 2 + band * (number + 1);
      this.depths(lane, width, from, scale).forEach((share, x) => {
        if (share) context.fillRect(x, bottom - share * band * 0.9, 1, share * band * 0.9);
      });
    });
    return this.image;
  }

  get window() {
    const [from, to] = this.timeline.bounds;
    const {view} = this.timeline;
    const scale = this.canvas.clientWidth / (to - from);
    const left = (view.from - from) * scale, right = (view.to - from) * scale;
    return [left, Math.max(right, left + MIN_WINDOW)];
  }

  draw() {
    const width = this.canvas.parentElement.clientWidth, height = 52;
    const context = fitCanvas(this.canvas, width, height);
    const [left, right] = this.window;
    context.drawImage(this.background(width, height), 0, 0, width, height);
    context.fillStyle = theme.veil;
    context.fillRect(0, 0, left, height);
    context.fillRect(right, 0, width - right, height);
    context.strokeStyle = theme.accent;
    context.lineWidth = 1.5;
    context.strokeRect(left, 1, right - left, height - 2);
  }

  grab(event) {
    const x = event.offsetX, [left, right] = this.window;
    this.canvas.setPointerCapture(event.pointerId);
    if (Math.abs(x - left) < EDGE && right - left > 3 * EDGE) this.grip = 'from';
    else if (Math.abs(x - right) < EDGE && right - left > 3 * EDGE) this.grip = 'to';
    else this.grip = 'both';
    // A press outside the window moves the window there.
    this.offset = x > left - EDGE && x < right + EDGE ? x - left : (right - left) / 2;
    this.move(event);
  }

  move(event) {
    const x = event.offsetX, [left, right] = this.window;
    const isEdge = right - left > 3 * EDGE && (Math.abs(x - left) < EDGE || Math.abs(x - right) < EDGE);
    this.canvas.style.cursor = isEdge || (this.grip && this.grip !== 'both') ? 'ew-resize' : 'grab';
    if (!this.grip) return;
    const [from, to] = this.timeline.bounds;
    const {view} = this.timeline;
    const time = (pixel) => from + (to - from) * pixel / this.canvas.clientWidth;
    if (this.grip === 'from') this.timeline.show(Math.min(time(x), view.to - MIN_NS), view.to);
    else if (this.grip === 'to') this.timeline.show(view.from, Math.max(time(x), view.from + MIN_NS));
    else this.timeline.show(time(x - this.offset), time(x - this.offset) + view.to - view.from);
  }
}
