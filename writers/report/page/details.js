/* details.js: the panel at the bottom, about the selection, and the tip beside the pointer. All text from a
 * trace is inserted as plain text. */

function showTip(event, text, more) {
  const tip = document.getElementById('tip');
  tip.hidden = !event;
  if (!event) return;
  tip.replaceChildren(text, element('small', more));
  const {width, height} = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 6))}px`;
  tip.style.top = `${event.clientY + 18 + height > innerHeight ? event.clientY - height - 8 : event.clientY + 18}px`;
}

/* ROWS: [name, text], or [name, text, click handler]. EXTRA: an element beside them. AROUND: shows the callers and the
 * callees of what is shown; a button beside the title. */
function showDetails(title, rows, extra, around) {
  const panel = document.getElementById('details');
  const list = element('dl'), heading = element('h2', title);
  if (around) heading.append(element('button', 'Callers and callees', {onclick: around}));
  for (const [name, text, click] of rows) {
    const value = element('dd');
    if (click) value.append(element('button', text, {onclick: click}));
    else value.textContent = text;
    list.append(element('dt', name), value);
  }
  document.getElementById('details-content').replaceChildren(heading, list, ...(extra ? [extra] : []));
  document.getElementById('details-content').classList.toggle('beside', Boolean(extra));
  panel.hidden = false;
}

function hideDetails() {
  document.getElementById('details').hidden = true;
}

/* Returns a row for each argument of a user's note. */
function argumentRows(args) {
  if (!args) return [];
  try {
    const values = Object.entries(JSON.parse(`{${args}}`));
    const show = (value) => (typeof value === 'string' ? value : JSON.stringify(value)).split('\n').map(visible).join('\n');
    return values.map(([name, value]) => [visible(name), show(value)]);
  } catch {
    return [['arguments', args]]; // the text was cut
  }
}

function noteRows(note) {
  if (!note) return [];
  return [...(note.flow !== '0' ? [['flow', note.flow]] : []), ...argumentRows(note.args)];
}

/* Returns rows with the targets of links, each a button. The keys lead to the same targets. */
function linkRows(model, links, go) {
  return links.map(({what, key, to}) => [key ? `${what} (${key})` : what, placeName(model, to), () => go(to)]);
}

/* Returns the rows of a resume: its task, and the coroutines awaited before and after it. */
function taskRows(model, track, span) {
  const place = track.isTask ? {task: {track}, resume: span} : resumeOf(model, track, span);
  if (!place) return [];
  const {task, resume} = place, of = task.track;
  if (!of) {
    const {name, args: coroutine} = model.note(task.note);
    return [['resume of', `${name} ${coroutine}, which has no track, since there are ${showCount(model.tasks.length)} tasks`]];
  }
  const rows = [['resume of', `${of.name}: ${showCount(resume + 1)} of ${showCount(of.count)}`]];
  if (resume > 0) rows.push(['had waited', showTime(of.start[resume] - of.end[resume - 1])]);
  for (const [what, chain] of [['had awaited', awaited(model, of, resume)], ['then awaits', awaited(model, of, resume + 1)]])
    if (chain) rows.push([what, chain]);
  return rows;
}

/* AROUND: shows the callers and the callees of a name. */
function spanDetails(model, track, span, links, select, around) {
  const {text, file, line, kind} = model.names[track.nameOf[span]];
  const took = track.end[span] - track.start[span];
  const rows = [['duration', showTime(took)], ['own time', `${showTime(track.own[span])}, ${(100 * track.own[span] / (took || 1)).toFixed(1)} %`],
                ['start', showTime(track.start[span])], ['track', `${track.group.name}: ${track.name}`]];
  if (kind === 'operator' || kind === 'annotation') rows.unshift(['kind', kind]);
  if (forwardOf(model, track, span)) rows.push(['forward at', forwardOf(model, track, span)]);
  if (file) rows.push(['file', `${file}:${line}`]);
  if (track.get('line', span)) rows.push(['resumed at line', String(track.get('line', span))]);
  for (const [flag, what] of FLAGS) if (track.get('flags', span) & flag) rows.push(['note', what]);
  const collection = track.collections.get(span);
  if (collection) rows.push(['generation', String(collection[0])], ['collected', showCount(collection[1])], ['uncollectable', showCount(collection[2])]);
  rows.push(...taskRows(model, track, span), ...noteRows(model.note(track.get('note', span))), ...linkRows(model, links, select));
  const parent = track.shownParent[span];
  if (parent >= 0) rows.push(['called by', model.names[track.nameOf[parent]].text, () => select({track, span: parent})]);
  showDetails(text, rows, model.sources.table(track.nameOf[span]), track.isTask ? undefined : () => around(track.nameOf[span]));
}

function markDetails(model, track, mark, links, select) {
  const note = model.note(mark.note);
  showDetails(note.name, [['mark at', showTime(mark.at)], ['track', `${track.group.name}: ${track.name}`], ...noteRows(note), ...linkRows(model, links, select)]);
}

function rangeDetails(model, [from, to], chosen) {
  const table = element('table', null, {id: 'range-table'});
  new TopTable(table, model, chosen).set(topRows(model, model.tracks.filter((track) => !track.isTask), from, to));
  showDetails(`Range: ${showTime(to - from)}`, [['from', showTime(from)], ['to', showTime(to)]], table);
}

/* Returns the change of a frame between two recordings: "+12.000 ms, +40.0 %". */
function changeText({tree, show}, node) {
  const before = tree.before[node], change = tree.total[node] - 2 * before;
  const share = before ? `${change < 0 ? '' : '+'}${(100 * change / before).toFixed(1)} %` : 'only after';
  return change === -before && before ? `−${show(before)}, only before` : `${change < 0 ? '−' : '+'}${show(Math.abs(change))}, ${share}`;
}

/* EXTRA and AROUND as in showDetails. */
function frameDetails(flame, node, extra, around) {
  const {text, file, line, kind} = flame.nameOf(node), {tree} = flame;
  const rows = [...(kind === 'operator' || kind === 'annotation' ? [['kind', kind]] : []), [tree.meaning?.(node, (one) => flame.nameOf(one)) ?? 'total', `${flame.show(tree.total[node])}, ${flame.share(node)}`]];
  if (!tree.meaning || tree.own[node]) rows.push(['own', flame.show(tree.own[node])]);
  if (tree.before) rows.push(['before', flame.show(tree.before[node])], ['after', flame.show(tree.total[node] - tree.before[node])], ['change', changeText(flame, node)]);
  if (tree.calls[node]) rows.push([flame.show === showTime ? 'calls' : 'blocks', showCount(tree.calls[node])]);
  if (file) rows.push(['file', `${file}:${line}`]);
  showDetails(text, rows, extra, around);
}
