/* memory_curve.js: live bytes over time, as a curve, with the peak and the chosen moment. A click, or an arrow key, chooses a
 * moment. */

const CURVE_HEIGHT = 110, CURVE_TOP = 20, CURVE_BOTTOM = 16, PEAK_REACH = 5;

class MemoryCurve {
  /* CHOOSE: called with the number of a moment, or -1 for the peak. */
  constructor(canvas, tables, choose) {
    this.canvas = canvas;
    this.tables = tables;
    this.choose = choose;
    this.times = (tables.moments ?? []).map(([time]) => time);
    this.duration = Math.max(tables.until_time_ns, tables.end_time_ns) - tables.begin_time_ns || 1;
    this.peak = tables.peak_time_ns - tables.begin_time_ns;
    this.moment = null; // the chosen one
    this.set(-1);
    canvas.addEventListener('click', (event) => this.click(event));
    canvas.addEventListener('keydown', (event) => this.key(event));
    canvas.addEventListener('pointermove', (event) => this.point(event));
    canvas.addEventListener('pointerleave', () => showTip(null));
  }

  /* Selects a device by its number, or all (-1). */
  set(device) {
    const {last, most} = this.tables.series;
    this.device = device;
    this.last = last[device + 1];
    this.most = most[device + 1];
    this.highest = this.most.reduce((a, b) => Math.max(a, b), 1);
  }

  get width() {
    return this.canvas.parentElement.clientWidth || 1;
  }

  x(time) {
    return time / this.duration * this.width;
  }

  y(bytes) {
    return CURVE_HEIGHT - CURVE_BOTTOM - bytes / this.highest * (CURVE_HEIGHT - CURVE_TOP - CURVE_BOTTOM);
  }

  timeOf(event) {
    return Math.min(Math.max(event.offsetX / this.width, 0), 1) * this.duration;
  }

  /* Returns the last moment that is not after TIME, or the first one. */
  momentAt(time) {
    return Math.max(firstWhere(0, this.times.length, (i) => this.times[i] > time) - 1, 0);
  }

  click(event) {
    const time = this.timeOf(event);
    if (Math.abs(event.offsetX - this.x(this.peak)) < PEAK_REACH) this.choose(-1);
    else if (this.times.length) this.choose(this.momentAt(time));
  }

  key(event) {
    const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (!by || !this.times.length) return;
    const from = this.moment ?? this.momentAt(this.peak);
    this.choose(Math.min(Math.max(from + by, 0), this.times.length - 1));
    event.preventDefault();
  }

  point(event) {
    const time = this.timeOf(event);
    const i = Math.min(Math.floor(time / this.tables.series.step_ns), this.last.length - 1);
    if (i < 0) showTip(null);
    else showTip(event, showTime(time), `${showBytes(this.last[i])}, at most ${showBytes(this.most[i])} near it`);
  }

  /* Draws the values of points as steps. */
  area(context, values, color) {
    const base = this.y(0), step = this.tables.series.step_ns;
    context.fillStyle = color;
    context.beginPath();
    context.moveTo(0, base);
    values.forEach((value, i) => {
      context.lineTo(this.x(i * step), this.y(value));
      context.lineTo(this.x((i + 1) * step), this.y(value));
    });
    if (values.length) context.lineTo(this.width, this.y(this.last[this.last.length - 1]));
    context.lineTo(this.width, base);
    context.fill();
  }

  /* Draws a line at TIME, with TEXT on the side that has space. */
  mark(context, time, text, color) {
    const x = Math.min(Math.max(this.x(time), 1), this.width - 1);
    context.fillStyle = color;
    context.fillRect(x - 0.75, 2, 1.5, CURVE_HEIGHT - CURVE_BOTTOM);
    context.textAlign = x > this.width / 2 ? 'right' : 'left';
    context.fillText(text, x + (x > this.width / 2 ? -5 : 5), 12);
  }

  draw() {
    const {width} = this;
    const context = fitCanvas(this.canvas, width, CURVE_HEIGHT);
    context.fillStyle = theme.back;
    context.fillRect(0, 0, width, CURVE_HEIGHT);
    this.area(context, this.most, theme.range);
    this.area(context, this.last, theme.accent);
    context.font = '12px system-ui, sans-serif';
    context.fillStyle = theme.faint;
    context.textAlign = 'left';
    context.fillText('0 s', 3, CURVE_HEIGHT - 3);
    context.textAlign = 'right';
    context.fillText(showTime(this.duration), width - 3, CURVE_HEIGHT - 3);
    if (this.device < 0) this.mark(context, this.peak, `peak: ${showBytes(this.highest)}`, theme.gc);
    if (this.moment !== null) this.mark(context, this.times[this.moment], showTime(this.times[this.moment]), theme.select);
  }
}
