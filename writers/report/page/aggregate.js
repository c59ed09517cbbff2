/* aggregate.js: adds up calls by stack, as a tree, and by function, as rows. */

/* Nodes by number; 0 is the root. Until finish, amounts are those of a node without its children. */
class Tree {
  /* COLLAPSES: a call of a function inside another call of it belongs to the same node. */
  constructor(collapses = false) {
    this.collapses = collapses;
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
    let node = this.known.get(key) ?? this.outer(parent, name, key);
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

  /* Returns the node of NAME around a new child of PARENT, if there is one and recursion is collapsed. */
  outer(parent, name, key) {
    if (!this.collapses) return undefined;
    for (let at = parent; at > 0; at = this.parent[at]) {
      if (this.name[at] !== name) continue;
      this.known.set(key, at);
      return at;
    }
    return undefined;
  }

  add(node, amount, calls) {
    this.own[node] += amount;
    this.calls[node] += calls;
  }

  /* Counts an amount that was added as one of the first of two recordings. */
  addBefore(node, amount) {
    (this.ownBefore ??= [])[node] = (this.ownBefore[node] ?? 0) + amount;
  }

  childrenOf(node) {
    return this.children[node];
  }

  /* Computes totals, and sorts children, largest first, or by their first calls. Parents are before their children. */
  finish(isByTime = false) {
    this.known = null;
    this.total = this.own.slice();
    this.children = this.name.map(() => []);
    for (let node = this.name.length - 1; node > 0; node--) {
      this.total[this.parent[node]] += this.total[node];
      if (this.total[node] > 0) this.children[this.parent[node]].push(node);
    }
    for (const children of this.children) children.sort((a, b) => (isByTime ? a - b : this.total[b] - this.total[a] || a - b));
    if (this.ownBefore) this.finishBefore();
    return this;
  }

  finishBefore() {
    this.ownBefore = this.name.map((_, node) => this.ownBefore[node] ?? 0);
    this.before = this.ownBefore.slice();
    for (let node = this.name.length - 1; node > 0; node--) this.before[this.parent[node]] += this.before[node];
  }
}

/* Of two recordings, the time of both is added up; tree.before is that of the first. */
function callTree({sides, alike}, tracks, collapses, isByTime) {
  const tree = new Tree(collapses);
  if (alike) tree.ownBefore = [0];
  for (const track of tracks) {
    const isBefore = sides[track.group.owner] === 'before';
    const nodes = new Uint32Array(track.count), {nameOf, own, shownParent, hidden} = track;
    for (let i = 0; i < track.count; i++) {
      const around = shownParent[i] < 0 ? 0 : nodes[shownParent[i]];
      if (hidden?.[nameOf[i]]) { // its time is that of the call around it
        if (around) tree.add(around, own[i], 0);
        if (around && isBefore) tree.addBefore(around, own[i]);
        continue;
      }
      nodes[i] = tree.child(around, alike === null ? nameOf[i] : alike[nameOf[i]]);
      tree.add(nodes[i], own[i], 1);
      if (isBefore) tree.addBefore(nodes[i], own[i]);
    }
  }
  return tree.finish(isByTime);
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
