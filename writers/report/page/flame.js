/* flame.js: a flame graph of a tree, with the root at the top. A click on a frame expands it and its callers to
 * the whole width. Frames narrower than half a pixel are left out, with all frames below them. */

const MIN_FRAME = 0.5;

class Flame {
  /* SHOW: formats an amount. NOTIFY: called with the clicked node, or null. */
  constructor(scroller, show, notify) {
    this.scroller = scroller;
    this.size = scroller.firstElementChild;
    this.canvas = scroller.querySelector('canvas');
    this.boxes = new Boxes();
    this.show = show;
    this.notify = notify;
    this.is = null;
    scroller.addEventListener('scroll', () => this.change());
    this.canvas.addEventListener('click', (event) => this.click(event));
    this.canvas.addEventListener('pointermove', (event) => this.point(event));
    this.canvas.addEventListener('pointerleave', () => showTip(null));
  }

  set(tree, names) {
    this.tree = tree;
    this.names = names;
    this.colors = nameColors(names);
    this.zoom(0);
  }

  /* IS: by name, whether it matches the search, or null. */
  highlight(is) {
    this.is = is;
    this.change();
  }

  zoom(node) {
    this.focus = node;
    this.scroller.scrollTop = 0;
    this.layOut();
  }

  /* Computes the frames that are wide enough: [node, row, from, to] as fractions of the width. */
  layOut() {
    const width = this.scroller.clientWidth || 1, {tree, focus} = this;
    this.laidOutFor = width;
    const path = [];
    for (let node = focus; node > 0; node = tree.parent[node]) path.unshift(node);
    this.frames = [[0, 0, 0, 1], ...path.map((node, i) => [node, i + 1, 0, 1])];
    const todo = [[focus, path.length, 0, 1]];
    let rows = path.length + 1;
    while (todo.length) {
      const [node, row, from, to] = todo.pop();
      let left = from;
      for (const child of tree.children[node]) {
        const right = left + (to - from) * tree.total[child] / tree.total[node];
        if ((right - left) * width < MIN_FRAME) break;
        this.frames.push([child, row + 1, left, right]);
        todo.push([child, row + 1, left, right]);
        rows = Math.max(rows, row + 2);
        left = right;
      }
    }
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
    return node ? this.names[this.tree.name[node]] : {text: 'all', label: 'all', file: '', line: 0};
  }

  draw() {
    const width = this.scroller.clientWidth, height = this.scroller.clientHeight, top = this.scroller.scrollTop;
    const context = fitCanvas(this.canvas, width, height);
    context.fillStyle = theme.back;
    context.fillRect(0, 0, width, height);
    this.boxes.clear();
    for (const [node, row, from, to] of this.frames) {
      const y = row * ROW + 4 - top;
      if (y < -ROW || y > height) continue;
      const name = this.tree.name[node];
      const color = node && (!this.is || this.is[name]) ? this.colors[name] : DIM_COLOR;
      this.boxes.add(color, from * width, y, Math.max((to - from) * width - 1, MIN_FRAME), ROW - 1);
      if ((to - from) * width > MIN_LABEL) this.boxes.label(this.nameOf(node).label, from * width, y + ROW / 2, (to - from) * width, color);
    }
    this.boxes.draw(context);
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

  click(event) {
    const node = this.hit(event);
    if (node === undefined) return;
    this.zoom(node);
    this.notify(node || null);
  }

  point(event) {
    const node = this.hit(event);
    if (node === undefined) showTip(null);
    else showTip(event, this.nameOf(node).text, `${this.show(this.tree.total[node])}, ${this.share(node)}`);
  }
}
