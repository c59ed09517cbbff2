/* flame_tab.js: the tab of the flame graph: which calls it is of, how they are arranged, and its search. */

const ARRANGEMENTS = {down: 'Callees below callers', up: 'Callers below callees (inverted)', around: 'Around one function (sandwich)'};
const FRAME_ORDERS = {heavy: 'Largest first', time: 'In order of first call'};

class FlameTab {
  /* TELL: shows a frame of a flame graph in the panel. */
  constructor(model, tell) {
    this.model = model;
    this.flame = new Flame(byId('flame-rows'), showTime, (node) => tell(this.flame, node));
    this.is = null;
    this.name = null; // the function in the middle; null: the one with the most own time
    for (const [value, text] of Object.entries(ARRANGEMENTS)) byId('flame-kind').append(new Option(text, value));
    for (const [value, text] of Object.entries(FRAME_ORDERS)) byId('flame-order').append(new Option(text, value));
    byId('flame-kind').onchange = () => {
      if (this.flame.selected !== null) this.name = this.flame.tree.name[this.flame.selected];
      this.arrange();
    };
    byId('flame-order').onchange = byId('flame-recursion').onchange = () => this.set(this.tracks);
    byId('flame-reset').onclick = () => this.flame.zoom(0);
    byId('flame-legend').hidden = !model.sides.length;
  }

  set(tracks) {
    const isByTime = byId('flame-order').value === 'time';
    this.tracks = tracks;
    this.tree = callTree(this.model, tracks, byId('flame-recursion').checked, isByTime);
    this.arrange();
  }

  arrange() {
    const {tree} = this, isByTime = byId('flame-order').value === 'time';
    const made = {down: () => tree, up: () => new InvertedTree(tree, isByTime), around: () => new SandwichTree(tree, isByTime, this.middle)};
    this.flame.set(made[byId('flame-kind').value](), this.model.names);
    this.tell();
  }

  /* Returns the name of the function in the middle of the sandwich. */
  get middle() {
    const {tree, name} = this;
    if (name !== null && tree.name.includes(name)) return name;
    const own = new Map();
    for (let node = 1; node < tree.name.length; node++) own.set(tree.name[node], (own.get(tree.name[node]) ?? 0) + tree.own[node]);
    return [...own].reduce((most, one) => (one[1] > most[1] ? one : most), [-1, -1])[0];
  }

  /* Shows the callers and the callees of a function. */
  around(name) {
    this.name = this.model.alike ? this.model.alike[name] : name;
    byId('flame-kind').value = 'around';
    this.arrange();
  }

  highlight(is) {
    this.is = is && this.model.alike ? is.map((_, name) => is[this.model.alike[name]] || is[name]) : is;
    this.flame.highlight(this.is);
    if (this.tree) this.tell();
  }

  tell() {
    const {tree, is} = this, whole = tree.total[0];
    const parts = [`${showTime(whole)} in ${showCount(tree.name.length - 1)} stacks`];
    if (is) {
      const matched = matchedTime(tree, is);
      parts.push(`found: ${showTime(matched)}, ${(100 * matched / (whole || 1)).toFixed(1)} %`);
    }
    byId('flame-text').textContent = parts.join('; ');
  }
}
