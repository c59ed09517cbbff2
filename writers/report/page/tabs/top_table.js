/* top_table.js: tables that a click on a column sorts: of functions with their calls and times here, of operators
 * and of steps in their own files. */

const COLUMNS = [['calls', 'Calls', showCount], ['own', 'Own', showTime], ['total', 'Total', showTime],
                 ['mean', 'Per call', showTime], ['longest', 'Longest', showTime], ['name', 'Function', null]];
const ROWS_AT_ONCE = 200;

class SortTable {
  /* COLUMNS: [key of a row, title, function that formats it]; the last one has its own cell. CHOSEN: called with the
   * clicked row. */
  constructor(table, columns, chosen) {
    this.table = table;
    table.role = 'table'; // narrow windows show rows as blocks, which would otherwise take the role away
    this.columns = columns;
    this.chosen = chosen;
    this.sign = -1;
    this.most = ROWS_AT_ONCE;
    this.rows = [];
    this.shown = [];
  }

  set(rows) {
    this.rows = rows;
    this.draw();
  }

  sort(key) {
    this.sign = key === this.key ? -this.sign : key === 'name' ? 1 : -1;
    this.key = key;
    this.draw();
  }

  showMore() {
    this.most += 5 * ROWS_AT_ONCE;
    this.draw();
  }

  /* Returns how many rows are not listed yet. */
  get hidden() {
    return Math.max(this.shown.length - this.most, 0);
  }

  listed() {
    return true;
  }

  draw() {
    const {key, sign} = this;
    this.shown = this.rows.filter((row) => this.listed(row));
    this.shown.sort((a, b) => {
      const x = this.value(a, key), y = this.value(b, key);
      return x < y ? -sign : x > y ? sign : a.name - b.name;
    });
    const head = element('tr', null, {role: 'row'});
    for (const [column, title] of this.columns) {
      const cell = element('th', null, {role: 'columnheader'});
      const button = element('button', title + (column === key ? (sign < 0 ? ' ↓' : ' ↑') : ''), {onclick: () => this.sort(column)});
      button.dataset.column = column;
      if (column === key) cell.setAttribute('aria-sort', sign < 0 ? 'descending' : 'ascending');
      cell.append(button);
      head.append(cell);
    }
    const body = element('tbody', null, {role: 'rowgroup'});
    for (const row of this.shown.slice(0, this.most)) body.append(this.row(row));
    const top = element('thead', null, {role: 'rowgroup'});
    top.append(head);
    this.table.replaceChildren(top, body);
  }

  row(row) {
    const line = element('tr', null, {role: 'row', tabIndex: 0, onclick: () => this.chosen(row)});
    line.onkeydown = (event) => {
      if (event.key === 'Enter') this.chosen(row);
    };
    for (const [column, , show] of this.columns) {
      const cell = element('td', null, {role: 'cell'});
      if (show) cell.textContent = show(row[column]);
      else this.lastCell(cell, row);
      line.append(cell);
    }
    return line;
  }
}

class TopTable extends SortTable {
  constructor(table, model, chosen, columns = COLUMNS) {
    super(table, columns, chosen);
    this.model = model;
    this.key = 'own';
    this.is = null;
  }

  set(rows) {
    for (const row of rows) row.mean = row.total / Math.max(row.calls, 1);
    this.sum = rows.reduce((sum, row) => sum + row.own, 0);
    super.set(rows);
  }

  /* IS: by name, whether the function is listed; null: all are. */
  filter(is) {
    this.is = is;
    this.draw();
  }

  listed(row) {
    return !this.is || this.is[row.name];
  }

  value(row, key) {
    return key === 'name' ? this.model.names[row.name].text : row[key];
  }

  lastCell(cell, row) {
    const {label, text, file, line, kind} = this.model.names[row.name];
    const share = element('span', null, {className: 'share', title: `${(100 * row.own / (this.sum || 1)).toFixed(1)} % of all own time`});
    const bar = element('i');
    bar.style.width = `${100 * Math.max(row.own, 0) / (this.sum || 1)}%`;
    share.append(bar);
    cell.append(share, file ? label : text);
    if (file) cell.append(element('span', `  ${file}:${line}`, {className: 'where'}));
    if (kind === 'operator' || kind === 'annotation') cell.append(element('span', `  ${kind}`, {className: 'where'}));
  }
}
