/* aggregate.js: adds up calls by stack, as a tree, and by function, as rows. */

/* Nodes by number; 0 is the root. Until finish, amounts are those of a node without its children. */
class Tree {
  constructor() {
    this.name = [-1];
    this.parent = [-1];
    this.own = [0];
    this.calls = [0];
    this.last = [0]; // a cache of the last child: the next one is usually the same
    this.known = new Map();
  }

  child(parent, name) {
    const last = this.last[parent];
    if (last && this.name[last] === name) return last;
    const key = parent * 2 ** 26 + name;
    let node = this.known.get(key);
    if (node === undefined) {
      node = this.name.push(name) - 1;
      this.parent.push(parent);
      this.own.push(0);
      this.calls.push(0);
      this.last.push(0);
      this.known.set(key, node);
    }
    this.last[parent] = node;
    return node;
  }

  add(node, amount, calls) {
    this.own[node] += amount;
    this.calls[node] += calls;
  }

  /* Computes totals, and sorts children, largest first. Parents are before their children. */
  finish() {
    this.known = null;
    this.total = this.own.slice();
    this.children = this.name.map(() => []);
    for (let node = this.name.length - 1; node > 0; node--) {
      this.total[this.parent[node]] += this.total[node];
      if (this.total[node] > 0) this.children[this.parent[node]].push(node);
    }
    for (const children of this.children) children.sort((a, b) => this.total[b] - this.total[a] || a - b);
    return this;
  }
}

function callTree(tracks) {
  const tree = new Tree();
  for (const track of tracks) {
    const nodes = new Uint32Array(track.count), {nameOf, own, shownParent, hidden} = track;
    for (let i = 0; i < track.count; i++) {
      const around = shownParent[i] < 0 ? 0 : nodes[shownParent[i]];
      if (hidden?.[nameOf[i]]) { // its time is that of the call around it
        if (around) tree.add(around, own[i], 0);
        continue;
      }
      nodes[i] = tree.child(around, nameOf[i]);
      tree.add(nodes[i], own[i], 1);
    }
  }
  return tree.finish();
}

/* Returns a row for each function that ran between two times, with the part of its calls between them: {name,
 * calls, own, total, longest, track, span}. In recursion only the outermost call counts for the total. span is
 * the longest call. The parts of a call that was cut count once. */
function topRows(model, tracks, from = -Infinity, to = Infinity) {
  const rows = new Array(model.names.length);
  const active = new Uint32Array(model.names.length);
  for (const track of tracks) {
    const {start, end, nameOf, depth, parent, shownParent, hidden} = track, {flags} = track.more;
    const stack = [];
    for (let i = 0; i < track.count; i++) {
      const level = parent[i] < 0 ? 0 : depth[i]; // overlapping spans in rows are not nested
      while (stack.length > level) active[stack.pop()]--;
      const name = nameOf[i];
      const isOuter = !active[name]++;
      stack.push(name);
      if (hidden?.[name] || end[i] <= from && start[i] < from || start[i] >= to) continue;
      const took = Math.min(end[i], to) - Math.max(start[i], from);
      const row = rows[name] ??= {name, calls: 0, own: 0, total: 0, longest: -1, track, span: i};
      if (!flags || !(flags[i] & CONTINUED)) row.calls++;
      row.own += took;
      if (isOuter) row.total += took;
      if (shownParent[i] >= 0 && rows[nameOf[shownParent[i]]]) rows[nameOf[shownParent[i]]].own -= took;
      if (took > row.longest) Object.assign(row, {longest: took, track, span: i});
    }
    while (stack.length) active[stack.pop()]--;
  }
  return rows.filter((row) => row);
}
