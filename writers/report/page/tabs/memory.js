/* memory.js: converts memory tables (NAME.tables.json) to a tree for a flame graph of bytes. */

const MEMORY_TIMES = [['peak', 'At the peak'], ['end', 'Not freed at the end'], ['all', 'All allocations']];

/* Returns the bytes and blocks of each row of TABLES at a time of MEMORY_TIMES, of "temporary" blocks, or at the moment with a
 * number. */
function memoryAmounts(tables, time, moment) {
  const bytes = new Float64Array(tables.rows.length), blocks = new Float64Array(tables.rows.length);
  const column = 2 + 2 * MEMORY_TIMES.findIndex(([name]) => name === time);
  const add = (row, size, count) => { bytes[row] += size; blocks[row] += count; };
  if (time === 'temporary') {
    for (const change of tables.temporary) add(...change);
  } else if (time === 'moment') {
    for (const [, changes] of tables.moments.slice(0, moment + 1))
      for (let i = 0; i < changes.length; i += 3) add(changes[i], changes[i + 1], changes[i + 2]);
  } else {
    tables.rows.forEach((row, i) => add(i, row[column], row[column + 1]));
  }
  return {bytes, blocks};
}

/* Returns the tree of these amounts, for a device's number or for all (-1). */
function memoryTree(tables, {bytes, blocks}, device) {
  const tree = new Tree();
  const nodes = [0];
  for (const [parent, symbol] of tables.nodes)
    nodes.push(tree.child(nodes[parent], symbol));
  tables.rows.forEach((row, i) => {
    if (device < 0 || row[0] === device)
      tree.add(row[1] ? nodes[row[1]] : tree.child(0, tables.symbols.length), bytes[i], blocks[i]);
  });
  return tree.finish();
}

/* Returns the names of a tree's nodes: symbols, and one name for blocks that no Python code allocated. */
function memoryNames(tables) {
  const names = tables.symbols.map(([name, file, line]) => [visible(name), visible(file), line]).map(([name, file, line]) => (
    {text: `${name}  ${file}:${line}`, label: `${name}:${line}`, file, line, kind: file ? 'python' : 'c'}));
  names.push({text: '(no Python)', label: '(no Python)', file: '', line: 0, kind: 'c'});
  return names;
}
