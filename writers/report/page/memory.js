/* memory.js: converts memory tables (NAME.tables.json) to a tree for a flame graph of bytes. */

const MEMORY_TIMES = [['peak', 'At the peak'], ['end', 'Not freed at the end'], ['all', 'All allocations']];

/* Returns the tree of TABLES at a time of MEMORY_TIMES, for a device's number or for all (-1). */
function memoryTree(tables, time, device) {
  const column = 2 + 2 * MEMORY_TIMES.findIndex(([name]) => name === time);
  const tree = new Tree();
  const nodes = [0];
  for (const [parent, symbol] of tables.nodes)
    nodes.push(tree.child(nodes[parent], symbol));
  for (const row of tables.rows) {
    if (device >= 0 && row[0] !== device) continue;
    tree.add(row[1] ? nodes[row[1]] : tree.child(0, tables.symbols.length), row[column], row[column + 1]);
  }
  return tree.finish();
}

/* Returns the names of a tree's nodes: symbols, and one name for blocks that no Python code allocated. */
function memoryNames(tables) {
  const names = tables.symbols.map(([name, file, line]) => [visible(name), visible(file), line]).map(([name, file, line]) => (
    {text: `${name}  ${file}:${line}`, label: `${name}:${line}`, file, line, kind: file ? 'python' : 'c'}));
  names.push({text: '(no Python)', label: '(no Python)', file: '', line: 0, kind: 'c'});
  return names;
}
