/* flame_trees.js: other arrangements of a call tree: by callers (inverted), and around one function (sandwich). Their
 * nodes are made when they are first shown, since there may be many more of them than of the tree's own. */

/* A tree with the interface that a flame graph needs. A node stands for nodes of SOURCE with one name, each with an
 * amount: members, as [node, amount, amount before]. */
class GrownTree {
  constructor(source, byTime) {
    this.source = source;
    this.byTime = byTime;
    this.name = [];
    this.parent = [];
    this.total = [];
    this.own = []; // only of the function in the middle
    this.calls = [];
    this.before = source.before ? [] : undefined;
    this.members = [];
    this.grown = []; // by node: its children, once they are needed
  }

  add(parent, name, members) {
    const node = this.name.push(name) - 1;
    this.parent.push(parent);
    this.total.push(members.reduce((sum, [, amount]) => sum + amount, 0));
    this.before?.push(members.reduce((sum, [, , before]) => sum + before, 0));
    this.own.push(0);
    this.calls.push(0);
    this.members.push(members);
    return node;
  }

  /* Adds a child of PARENT for each name of MEMBERS. */
  grow(parent, members) {
    const {name} = this.source, byName = new Map();
    for (const member of members) {
      const key = name[member[0]];
      if (!byName.has(key)) byName.set(key, []);
      byName.get(key).push(member);
    }
    const children = [...byName].map(([key, some]) => this.add(parent, key, some));
    const first = (child) => this.members[child].reduce((least, [node]) => Math.min(least, node), Infinity);
    return children.sort((a, b) => (this.byTime ? first(a) - first(b) : this.total[b] - this.total[a] || a - b));
  }

  /* Returns the members of the callers of a node. */
  up(node) {
    const {parent} = this.source;
    return this.members[node].filter(([at]) => parent[at] > 0).map(([at, ...amounts]) => [parent[at], ...amounts]);
  }

  amountBefore(node) {
    return this.source.before ? this.source.before[node] : 0;
  }
}

/* Functions by their own time, and below each its callers. */
class InvertedTree extends GrownTree {
  constructor(source, byTime) {
    super(source, byTime);
    const members = [];
    for (let node = 1; node < source.name.length; node++)
      if (source.own[node] > 0) members.push([node, source.own[node], source.before ? source.ownBefore[node] : 0]);
    this.add(-1, -1, members);
  }

  childrenOf(node) {
    return this.grown[node] ??= this.grow(node, node ? this.up(node) : this.members[0]);
  }

  grow(parent, members) {
    const children = super.grow(parent, members);
    for (const child of parent ? [] : children) this.calls[child] = this.members[child].reduce((sum, [node]) => sum + this.source.calls[node], 0);
    return children;
  }

  /* Returns what the amount of a node is, for the panel. */
  meaning(node, nameOf) {
    let top = node;
    while (this.parent[top] > 0) top = this.parent[top];
    return top === node ? 'own' : `own time of ${nameOf(top).label}, called from here`;
  }
}

/* One function: its callees below it, its callers above it. Of calls within calls of it only the outermost count. */
class SandwichTree extends GrownTree {
  constructor(source, byTime, name) {
    super(source, byTime);
    const inside = new Uint8Array(source.name.length), members = [];
    let own = 0, calls = 0;
    for (let node = 1; node < source.name.length; node++) {
      const around = source.parent[node], is = source.name[node] === name;
      inside[node] = is || inside[around];
      if (!is) continue;
      own += source.own[node];
      calls += source.calls[node];
      if (!inside[around]) members.push([node, source.total[node], this.amountBefore(node)]);
    }
    this.add(-1, name, members);
    this.own[0] = own;
    this.calls[0] = calls;
    this.callers = [];
    this.isCaller = [false];
  }

  mark(children, isCaller) {
    for (const child of children) this.isCaller[child] = isCaller;
    return children;
  }

  childrenOf(node) {
    const {source} = this;
    return this.grown[node] ??= this.mark(this.grow(node, this.members[node].flatMap(([at]) =>
      source.childrenOf(at).map((child) => [child, source.total[child], this.amountBefore(child)]))), false);
  }

  callersOf(node) {
    return this.callers[node] ??= this.mark(this.grow(node, this.up(node)), true);
  }

  meaning(node, nameOf) {
    if (!node) return 'total';
    return this.isCaller[node] ? `time in ${nameOf(0).label}, called from here` : `total in ${nameOf(0).label}`;
  }
}

/* Returns the time in calls of which the name matches, where they are outermost. IS: by name. */
function matchedTime(tree, is) {
  const inside = new Uint8Array(tree.name.length);
  let sum = 0;
  for (let node = 1; node < tree.name.length; node++) {
    const around = inside[tree.parent[node]];
    inside[node] = around || is[tree.name[node]];
    if (inside[node] && !around) sum += tree.total[node];
  }
  return sum;
}
