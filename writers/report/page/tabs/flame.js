/* flame.js: draws a tree as a flame graph, with its root at the top, or between callers and callees. A click on a
 * frame expands it and its callers to the whole width. Frames narrower than half a pixel are left out, with
 * all frames beyond them. */

const MIN_FRAME = 0.5;

class Flame {
  /* SHOW: formats an amount. NOTIFY: called with the selected node, or null. */
  constructor(scroller, show, notify) {
    this.scroller = scroller;
    this.size = scroller.firstElementChild;
    this.canvas = scroller.querySelector('canvas');
    this.boxes = new Boxes();
    this.show = show;
    this.notify = notify;
    this.is = null;
    this.selected = null;
    scroller.addEventListener('scroll', () => this.change());
    this.canvas.addEventListener('click', (event) => this.click(event));
    this.canvas.addEventListener('pointermove', (event) => this.point(event));
    this.canvas.addEventListener('pointerleave', () => showTip(null));
    this.canvas.addEventListener('keydown', (event) => this.key(event));
  }

  set(tree, names) {
    this.tree = tree;
    this.names = names;
    this.colors = nameColors(names);
    this.selected = null;
    this.zoom(0);
  }

  /* IS: by name, whether it matches the search, or null. */
  highlight(is) {
    this.is = is;
    this.change();
  }

  zoom(node) {
    this.focus = this.tree.callersOf ? 0 : node; // what is around a function is always shown whole
    this.layOut();
    const [, row] = this.frames[0];
    this.scroller.scrollTop = this.tree.callersOf ? Math.max(row * ROW - this.scroller.clientHeight / 2, 0) : 0;
  }

  /* Computes the frames that are wide enough: [node, row, from, to] as fractions of the width. */
  layOut() {
    const width = this.scroller.clientWidth || 1, {tree, focus} = this;
    this.laidOutFor = width;
    const path = [];
    for (let node = focus; node > 0; node = tree.parent[node]) path.unshift(node);
    this.frames = [[0, 0, 0, 1], ...path.map((node, i) => [node, i + 1, 0, 1])];
    const todo = [[focus, path.length, 0, 1, false]];
    if (tree.callersOf) todo.push([0, 0, 0, 1, true]);
    while (todo.length) {
      const [node, row, from, to, isUp] = todo.pop();
      let left = from;
      for (const child of isUp ? tree.callersOf(node) : tree.childrenOf(node)) {
        const right = left + (to - from) * tree.total[child] / tree.total[node];
        if ((right - left) * width >= MIN_FRAME) {
          this.frames.push([child, row + (isUp ? -1 : 1), left, right]);
          todo.push([child, row + (isUp ? -1 : 1), left, right, isUp]);
        }
        left = right;
      }
    }
    const rowOf = this.frames.map((frame) => frame[1]);
    const first = rowOf.reduce((least, row) => Math.min(least, row), 0), rows = rowOf.reduce((most, row) => Math.max(most, row), 0) - first + 1;
    for (const frame of this.frames) frame[1] -= first;
    this.size.style.height = `${rows * ROW + 8}px`;
    this.change();
  }

  change() {
    if (this.asked) return;
    this.asked = requestAnimationFrame(() => {
      this.asked = 0;
      if (!this.tree || !this.scroller.clientWidth) return;
      if (this.laidOutFor !== this.scroller.clientWidth) this.layOut();
      this.draw();
    });
  }

  nameOf(node) {
    const name = this.tree.name[node];
    return name >= 0 ? this.names[name] : {text: 'all', label: 'all', file: '', line: 0};
  }

  colorOf(node) {
    const {tree, is} = this, name = tree.name[node];
    if (name < 0 || (is && !is[name])) return DIM_COLOR;
    return tree.before ? changeColor(tree.before[node], tree.total[node] - tree.before[node]) : this.colors[name];
  }

  draw() {
    const width = this.scroller.clientWidth, height = this.scroller.clientHeight, top = this.scroller.scrollTop;
    const context = fitCanvas(this.canvas, width, height);
    context.fillStyle = theme.back;
    context.fillRect(0, 0, width, height);
    this.boxes.clear();
    let outline = null;
    for (const [node, row, from, to] of this.frames) {
      const y = row * ROW + 4 - top;
      if (y < -ROW || y > height) continue;
      const color = this.colorOf(node);
      this.boxes.add(color, from * width, y, Math.max((to - from) * width - 1, MIN_FRAME), ROW - 1);
      if ((to - from) * width > MIN_LABEL) this.boxes.label(this.nameOf(node).label, from * width, y + ROW / 2, (to - from) * width, color);
      if (node === (this.selected ?? (this.tree.callersOf ? 0 : null))) outline = [from * width, y, Math.max((to - from) * width - 1, 2), ROW - 1];
    }
    this.boxes.draw(context);
    if (!outline) return;
    context.strokeStyle = theme.select;
    context.lineWidth = 2;
    context.strokeRect(...outline);
  }

  hit(event) {
    const row = Math.floor((event.offsetY + this.scroller.scrollTop - 4) / ROW);
    const x = event.offsetX / this.scroller.clientWidth;
    return this.frames.find((frame) => frame[1] === row && frame[2] <= x && x < frame[3])?.[0];
  }

  /* Returns the share of a node in the total. */
  share(node) {
    return `${(100 * this.tree.total[node] / (this.tree.total[0] || 1)).toFixed(1)} %`;
  }

  select(node) {
    this.selected = node || this.tree.callersOf ? node : null;
    this.notify(this.selected);
    this.change();
  }

  click(event) {
    const node = this.hit(event);
    if (node === undefined) return;
    this.zoom(node);
    this.select(node);
  }

  point(event) {
    const node = this.hit(event);
    if (node === undefined) showTip(null);
    else showTip(event, this.nameOf(node).text, `${this.show(this.tree.total[node])}, ${this.share(node)}${this.tree.before ? `, ${changeText(this, node)}` : ''}`);
  }

  /* Selects the frame above, below or beside the selected one, or gives it the whole width. */
  key(event) {
    if (event.key === 'Enter' && this.selected !== null) this.zoom(this.selected);
    else if (STEPS[event.key]) this.step(STEPS[event.key]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  step(step) {
    const here = this.frames.find(([node]) => node === (this.selected ?? 0)) ?? this.frames[0], [, row, from, to] = here;
    const width = (frame) => Math.min(frame[3], to) - Math.max(frame[2], from);
    const inRow = (wanted) => this.frames.filter((frame) => frame[1] === wanted);
    const found = {
      out: () => inRow(row - 1).filter((frame) => width(frame) > 0).sort((a, b) => width(b) - width(a))[0],
      in: () => inRow(row + 1).filter((frame) => width(frame) > 0).sort((a, b) => width(b) - width(a))[0],
      before: () => inRow(row).filter((frame) => frame[2] < from).sort((a, b) => b[2] - a[2])[0],
      after: () => inRow(row).filter((frame) => frame[2] > from).sort((a, b) => a[2] - b[2])[0],
    }[step]();
    if (!found) return;
    const y = found[1] * ROW, {scrollTop, clientHeight} = this.scroller;
    if (y < scrollTop || y > scrollTop + clientHeight - 2 * ROW) this.scroller.scrollTop = y - clientHeight / 2;
    this.select(found[0]);
  }
}
