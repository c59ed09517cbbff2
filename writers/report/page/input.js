/* input.js: the keyboard and the pointer. Keys that move repeat while they are held, at the same speed for any
 * frame rate. */

const ZOOM_A_SECOND = 12, PIXELS_A_SECOND = 1600, SCROLL_A_SECOND = 900, TAP_SECONDS = 0.06;
const MOVES = {w: 'in', s: 'out', a: 'left', d: 'right', ArrowLeft: 'left', ArrowRight: 'right', ArrowUp: 'up', ArrowDown: 'down'};

class Keys {
  /* IS_HERE: returns whether the timeline is visible. COMMANDS: handlers of other keys, by key; one that returns
   * false leaves the key to the browser. */
  constructor(timeline, isHere, commands) {
    this.timeline = timeline;
    this.held = new Set();
    this.pointer = 0.5; // fixed point of zooming, as a fraction of the width
    document.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
      const isText = event.target.matches('input, select');
      if (isText && event.key !== 'Escape') return;
      const isMove = timeline && isHere() && !(event.shiftKey && STEPS[event.key]);
      const move = isMove ? MOVES[event.key.length === 1 ? event.key.toLowerCase() : event.key] : undefined;
      const command = commands[event.key];
      if (move) this.press(move);
      else if (!command || command(event) === false) return;
      event.preventDefault();
    });
    document.addEventListener('keyup', (event) => this.held.delete(MOVES[event.key.length === 1 ? event.key.toLowerCase() : event.key]));
    window.addEventListener('blur', () => this.held.clear());
  }

  press(move) {
    if (this.held.has(move)) return;
    this.held.add(move);
    this.step(move, TAP_SECONDS);
    if (this.held.size === 1) this.run(performance.now());
  }

  run(before) {
    requestAnimationFrame((now) => {
      if (!this.held.size) return;
      for (const move of this.held) this.step(move, Math.min(Math.max(now - before, 0) / 1000, 0.1));
      this.run(now);
    });
  }

  step(move, seconds) {
    const {timeline} = this;
    if (move === 'in' || move === 'out')
      timeline.zoom(ZOOM_A_SECOND ** (move === 'in' ? -seconds : seconds), this.pointer * timeline.view.width);
    else if (move === 'left' || move === 'right') timeline.pan(PIXELS_A_SECOND * (move === 'left' ? -seconds : seconds));
    else timeline.scroller.scrollTop += SCROLL_A_SECOND * (move === 'up' ? -seconds : seconds);
  }
}

/* The pointer on the timeline. SELECT and MEASURED handle a click and a measured range. */
class Pointer {
  constructor(timeline, keys, select, measured) {
    Object.assign(this, {timeline, keys, select, measured, drag: null, fingers: new Map(), pinch: null});
    const {canvas} = timeline;
    canvas.addEventListener('pointerdown', (event) => this.down(event));
    canvas.addEventListener('pointermove', (event) => this.move(event));
    canvas.addEventListener('pointerup', (event) => this.up(event));
    canvas.addEventListener('pointercancel', (event) => this.lift(event));
    canvas.addEventListener('pointerleave', () => showTip(null));
    canvas.addEventListener('dblclick', (event) => {
      const hit = timeline.hit(event.offsetX, event.offsetY);
      if (hit.track) timeline.reveal(hit, true);
    });
    canvas.addEventListener('wheel', (event) => this.wheel(event), {passive: false});
  }

  down(event) {
    if (event.button) return;
    this.timeline.canvas.setPointerCapture(event.pointerId);
    this.fingers.set(event.pointerId, event.offsetX);
    if (this.fingers.size > 1) {
      this.beginPinch();
      return;
    }
    this.drag = {x: event.offsetX, y: event.offsetY, lastX: event.offsetX, lastY: event.offsetY, moved: false,
                 from: this.timeline.time(event.offsetX), measures: event.shiftKey};
    showTip(null);
  }

  move(event) {
    const {timeline, drag} = this;
    const {offsetX: x, offsetY: y} = event;
    this.keys.pointer = x / timeline.view.width;
    if (this.fingers.has(event.pointerId)) this.fingers.set(event.pointerId, x);
    if (this.pinch) {
      this.movePinch();
      return;
    }
    if (!drag) {
      this.tip(event);
      return;
    }
    drag.moved ||= Math.hypot(x - drag.x, y - drag.y) > 3;
    if (!drag.moved) return;
    if (drag.measures) {
      timeline.measure(drag.from, timeline.time(x));
    } else {
      timeline.pan(drag.lastX - x);
      timeline.scroller.scrollTop += drag.lastY - y;
    }
    [drag.lastX, drag.lastY] = [x, y];
  }

  /* The times below two fingers stay below them. */
  beginPinch() {
    const [a, b] = [...this.fingers.values()].sort((x, y) => x - y);
    this.drag = null;
    this.pinch = [this.timeline.time(a), this.timeline.time(b)];
  }

  movePinch() {
    const {timeline, pinch: [from, to]} = this, {width} = timeline.view;
    const [a, b] = [...this.fingers.values()].sort((x, y) => x - y);
    const scale = (to - from) / Math.max(b - a, 20);
    timeline.show(from - a * scale, from + (width - a) * scale);
  }

  lift(event) {
    this.fingers.delete(event.pointerId);
    this.drag = null;
    if (this.fingers.size < 2) this.pinch = null;
  }

  up(event) {
    const {timeline, drag} = this;
    this.lift(event);
    if (!drag) return;
    if (drag.moved) {
      if (drag.measures) this.measured(timeline.range);
      return;
    }
    const hit = timeline.hit(event.offsetX, event.offsetY);
    if (hit.track) this.select(hit);
    else if (hit.band && !hit.band.lane) timeline.toggle(hit.band);
    else if (hit.band && event.offsetY + timeline.scroller.scrollTop < hit.band.y + HEAD) timeline.fold(hit.band.lane);
    else this.select(null);
  }

  tip(event) {
    const {model} = this.timeline;
    const hit = this.timeline.hit(event.offsetX, event.offsetY);
    this.timeline.canvas.style.cursor = hit.track ? 'pointer' : 'default';
    if (hit.mark) showTip(event, model.note(hit.mark.note).name, `mark at ${showTime(hit.mark.at)}`);
    else if (hit.track) this.spanTip(event, model.names[hit.track.nameOf[hit.span]], hit);
    else showTip(null);
  }

  spanTip(event, {text, kind}, {track, span}) {
    const parts = [showTime(track.end[span] - track.start[span])];
    if (kind === 'operator' || kind === 'annotation') parts.unshift(kind);
    if (this.timeline.bandOf(track)?.lane.pool !== null) parts.push(track.name); // which of the threads of the lane
    showTip(event, text, parts.join(', '));
  }

  /* The browser handles a wheel without keys, which scrolls. */
  wheel(event) {
    const {timeline} = this, pixels = event.deltaMode ? 33 : 1; // some browsers count in lines
    const across = pixels * (event.shiftKey ? event.deltaY || event.deltaX : event.deltaX);
    if (event.ctrlKey) timeline.zoom(1.0018 ** (pixels * event.deltaY), event.offsetX);
    else if (across) timeline.pan(across);
    else return;
    event.preventDefault();
  }
}
