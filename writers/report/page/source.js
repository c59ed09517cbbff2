/* source.js: the lines of functions, which a page has if it was made with --source, and the own time by line of
 * calls that went on at a line: those of generators and coroutines. */

class Sources {
  constructor(model) {
    this.model = model;
    this.functions = new Map(); // by file and first line: {lines, isChanged}
    this.times = null; // by name: own time by line, once it is needed
  }

  /* FILES: [file, whether it changed after the recording, [first line, lines] of each function]. */
  add(files) {
    for (const [file, isChanged, functions] of files)
      for (const [line, lines] of functions) this.functions.set(`${visible(file)}\0${line}`, {lines: lines.map(visible), isChanged});
  }

  /* Returns own time by line for each name that has calls which went on at a line. A call that began has the first. */
  timesByLine() {
    const times = new Map(), {names, tracks} = this.model;
    const withLines = new Set();
    for (const {isTask, count, nameOf, more: {line}} of tracks)
      for (let i = 0; line && !isTask && i < count; i++) if (line[i]) withLines.add(nameOf[i]);
    for (const name of withLines) times.set(name, new Map());
    for (const {isTask, count, nameOf, own, more: {line}} of withLines.size ? tracks : []) {
      for (let i = 0; !isTask && i < count; i++) {
        const byLine = times.get(nameOf[i]);
        if (!byLine) continue;
        const at = line?.[i] || names[nameOf[i]].line;
        byLine.set(at, (byLine.get(at) ?? 0) + own[i]);
      }
    }
    return times;
  }

  /* Returns the table of a function's lines, or undefined if the page does not have them. */
  table(name) {
    const {file, line: first, label} = this.model.names[name];
    const found = this.functions.get(`${file}\0${first}`);
    if (!found) return undefined;
    this.times ??= this.timesByLine();
    const times = this.times.get(name), most = times ? Math.max(...times.values()) : 0;
    const table = element('table', null, {className: 'source'});
    table.setAttribute('aria-label', `Source of ${label}`);
    const title = found.isChanged ? 'The file changed after the recording: lines may differ' : times ? 'Own time by the line at which calls began or went on' : 'Own time by line is known of generators and coroutines only';
    table.append(element('caption', title, {className: found.isChanged ? 'warn' : ''}));
    const body = element('tbody');
    found.lines.forEach((text, i) => {
      const at = Math.max(first, 1) + i, row = element('tr'), took = times?.get(at);
      row.append(element('td', String(at)));
      if (times) {
        const cell = element('td', took === undefined ? '' : showTime(took));
        if (took) cell.style.setProperty('--share', `${100 * took / (most || 1)}%`);
        row.append(cell);
      }
      row.append(element('td', text));
      body.append(row);
    });
    table.append(body);
    return table;
  }
}
