/* top_table.js: the table of functions with their calls and times. A click on a column sorts by it. */

const COLUMNS = [['calls', 'Calls', showCount], ['own', 'Own', showTime], ['total', 'Total', showTime],
                 ['mean', 'Per call', showTime], ['longest', 'Longest', showTime], ['name', 'Function', null]];
const ROWS_AT_ONCE = 200;

class TopTable {
  /* CHOSEN: called with the clicked row. */
  constructor(table, model, chosen) {
    this.table = table;
    this.model = model;
    this.chosen = chosen;
    this.key = 'own';
    this.sign = -1;
    this.most = ROWS_AT_ONCE;
    this.is = null;
    this.rows = [];
  }

  set(rows) {
    this.rows = rows;
    for (const row of rows) row.mean = row.total / row.calls;
    this.sum = rows.reduce((sum, row) => sum + row.own, 0);
    this.draw();
  }

  /* IS: by name, whether the function is listed; null: all are. */
  filter(is) {
    this.is = is;
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

  draw() {
    const {names} = this.model, {key, sign} = this;
    const value = key === 'name' ? (row) => names[row.name].text : (row) => row[key];
    this.shown = this.rows.filter((row) => !this.is || this.is[row.name]);
    this.shown.sort((a, b) => {
      const x = value(a), y = value(b);
      return x < y ? -sign : x > y ? sign : a.name - b.name;
    });
    const head = element('tr');
    for (const [column, title] of COLUMNS) {
      const cell = element('th');
      const button = element('button', title + (column === key ? (sign < 0 ? ' ↓' : ' ↑') : ''), {onclick: () => this.sort(column)});
      button.dataset.column = column;
      if (column === key) cell.setAttribute('aria-sort', sign < 0 ? 'descending' : 'ascending');
      cell.append(button);
      head.append(cell);
    }
    const body = element('tbody');
    for (const row of this.shown.slice(0, this.most)) body.append(this.row(row));
    const top = element('thead');
    top.append(head);
    this.table.replaceChildren(top, body);
  }

  row(row) {
    const line = element('tr', null, {tabIndex: 0, onclick: () => this.chosen(row)});
    line.onkeydown = (event) => {
      if (event.key === 'Enter') this.chosen(row);
    };
    for (const [column, , show] of COLUMNS) {
      const cell = element('td');
      if (show) cell.textContent = show(row[column]);
      else this.nameCell(cell, row);
      line.append(cell);
    }
    return line;
  }

  nameCell(cell, row) {
    const {label, text, file, line} = this.model.names[row.name];
    const share = element('span', null, {className: 'share', title: `${(100 * row.own / (this.sum || 1)).toFixed(1)} % of all own time`});
    const bar = element('i');
    bar.style.width = `${100 * Math.max(row.own, 0) / (this.sum || 1)}%`;
    share.append(bar);
    cell.append(share, file ? label : text);
    if (file) cell.append(element('span', `  ${file}:${line}`, {className: 'where'}));
  }
}
