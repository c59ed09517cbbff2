/* summary.js: what stands out in a trace, in words: the findings of writers/findings, which `kpytrace explain` prints, with
 * links to their stretches. Nothing is computed here, so that both say the same. */

/* Returns the stretch of PLACE on the page: {track, span}, or {start, end} if it is no call. NAME: of the call, if known. */
function stretchOf(model, owner, {at_ns, ns, tid}, name) {
  const {findings, first_ns, offset} = model.sections[owner];
  const start = at_ns + Number(BigInt(findings.first_ns) - BigInt(first_ns)) + offset;
  let found = {start, end: start + ns}, nearest = Infinity;
  for (const track of model.tracks) {
    if (!tid || track.tid !== tid || track.group.owner !== owner || track.isCalls || track.isTask) continue;
    for (let span = 0; span < track.count; span++) {
      if (track.start[span] !== start) continue;
      const isNamed = name !== undefined && model.names[track.nameOf[span]].text === visible(name);
      const away = isNamed ? -1 : Math.abs(track.end[span] - start - ns);
      if (away < nearest) [found, nearest] = [{track, span}, away];
    }
  }
  return found;
}

function shareCells(line, share, ns) {
  const cell = element('td'), bar = element('span', null, {className: 'share'}), part = element('i');
  part.style.width = `${100 * share}%`;
  bar.append(part);
  cell.append(bar, element('span', `${(100 * share).toFixed(1)} %`, {className: 'percent'}));
  line.append(cell, element('td', showTime(ns)));
}

function summaryTable(titles, rows) {
  const table = element('table'), head = element('tr'), top = element('thead'), body = element('tbody');
  for (const title of titles) head.append(element('th', title));
  top.append(head);
  body.append(...rows);
  table.append(top, body);
  return table;
}

/* The parts of one process. GO: called with a stretch. */
class Summary {
  constructor(model, owner, go) {
    this.model = model;
    this.owner = owner;
    this.go = go;
    this.found = model.sections[owner].findings;
  }

  link(text, place, name) {
    return element('button', text, {onclick: () => this.go(stretchOf(this.model, this.owner, place, name))});
  }

  findings() {
    return this.found.findings.map(({kind, title, text, places}) => {
      const card = element('article', null, {className: 'finding'});
      card.dataset.kind = kind;
      card.append(element('h3', title), element('p', visible(text)));
      for (const place of places) {
        const thread = place.thread ? ` on ${visible(place.thread)}` : '';
        card.append(this.link(`Show ${showTime(place.ns)} at ${showTime(place.at_ns)}${thread}`, place));
      }
      return card;
    });
  }

  own() {
    return summaryTable(['Share', 'Own', 'Calls', 'Function'], this.found.own.map((row) => {
      const line = element('tr'), last = element('td');
      shareCells(line, row.share, row.own_ns);
      last.append(this.link(visible(row.short), row.longest, row.name));
      if (row.waits) last.append(element('span', '  waits', {className: 'where'}));
      line.append(element('td', showCount(row.calls)), last);
      return line;
    }));
  }

  modules() {
    const {modules, more_modules: more} = this.found;
    const rows = modules.map(({module, own_ns, share}) => {
      const line = element('tr');
      shareCells(line, share, own_ns);
      line.append(element('td', visible(module)));
      return line;
    });
    const table = summaryTable(['Share', 'Own', 'Module'], rows);
    return more ? [table, element('p', `and ${showCount(more)} more modules`, {className: 'about'})] : [table];
  }

  waits() {
    return summaryTable(['Total', 'Waits', 'Threads', 'For', 'Where'], this.found.waits.map((row) => {
      const line = element('tr'), last = element('td');
      for (const text of [showTime(row.total_ns), showCount(row.count), showCount(row.threads), row.for]) line.append(element('td', text));
      last.append(this.link(visible(row.in.short), row.longest));
      if (row.by.short !== row.in.short) last.append(` called by ${visible(row.by.short)}`);
      line.append(last);
      return line;
    }));
  }

  /* Returns the number of findings. */
  put(place) {
    const {found} = this, json = this.model.sections[this.owner], findings = this.findings();
    place.append(element('h2', visible(this.model.sections.length > 1 ? `${json.process} ${json.pid}` : 'Findings')));
    place.append(element('p', `${showCount(found.calls)} calls of ${showCount(found.threads)} threads in ${showTime(found.duration_ns)}`, {className: 'about'}));
    if (findings.length) place.append(...findings);
    else place.append(element('p', 'Nothing stands out.', {className: 'no-findings'}));
    if (found.own.length) place.append(element('h2', 'Largest own times'), this.own());
    if (found.modules.length) place.append(element('h2', 'Own time by module, with the C functions that it calls'), ...this.modules());
    if (found.waits.length) place.append(element('h2', 'Longest waits'), this.waits());
    if (found.limits.length) {
      const list = element('ul', null, {className: 'limits'});
      for (const text of found.limits) list.append(element('li', visible(text)));
      place.append(element('h2', 'Not in the recording'), list);
    }
    return findings.length;
  }
}

/* Fills the tab. Returns the number of findings. */
function showSummary(model, go) {
  const place = element('div');
  let count = 0;
  model.sections.forEach((json, owner) => {
    if (json.findings) count += new Summary(model, owner, go).put(place);
  });
  document.getElementById('summary').append(place);
  return count;
}
