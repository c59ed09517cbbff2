/* notes.js: the facts that a reader needs to judge a trace: lost data, unfinished calls, and garbage
 * collections. */

/* Returns texts about the data that a section lost. */
function losses({stats}) {
  const rows = [['events dropped', 'events were dropped: calls are missing'],
                ['events repaired', 'events were repaired: some starts or ends are inferred'],
                ['threads unreached', 'threads could not be attached: their calls are missing'],
                ['functions disabled', 'functions were switched off by the overhead guard']];
  return rows.filter(([key]) => stats[key]).map(([key, text]) => `${showCount(stats[key])} ${text}`);
}

function countFlags(model) {
  const counts = FLAGS.map(() => 0);
  for (const track of model.tracks) {
    if (!track.more.flags) continue;
    for (const flags of track.more.flags) FLAGS.forEach(([flag], i) => { if (flags & flag) counts[i]++; });
  }
  return counts;
}

/* By generation: [count, time, longest, collected, uncollectable, track, span of the longest]. */
function collections(model) {
  const rows = [];
  for (const track of model.tracks) {
    for (const [span, [generation, collected, uncollectable]] of track.collections) {
      const took = track.end[span] - track.start[span];
      const row = rows[generation] ??= [0, 0, -1, 0, 0, null, 0];
      row[0]++;
      row[1] += took;
      row[3] += collected;
      row[4] += uncollectable;
      if (took > row[2]) [row[2], row[5], row[6]] = [took, track, span];
    }
  }
  return rows;
}

function collectionTable(rows, select) {
  const table = element('table', null, {id: 'collections', role: 'table'});
  const head = element('tr', null, {role: 'row'});
  for (const title of ['Generation', 'Collections', 'Time', 'Longest', 'Collected', 'Uncollectable', 'In the timeline'])
    head.append(element('th', title, {role: 'columnheader'}));
  table.append(head);
  rows.forEach(([count, time, longest, collected, uncollectable, track, span], generation) => {
    const line = element('tr', null, {role: 'row'});
    for (const text of [generation, showCount(count), showTime(time), showTime(longest), showCount(collected), showCount(uncollectable)])
      line.append(element('td', text, {role: 'cell'}));
    const cell = element('td', null, {role: 'cell'});
    cell.append(element('button', 'Show the longest', {onclick: () => select({track, span})}));
    line.append(cell);
    table.append(line);
  });
  return table;
}

function about(json) {
  const list = element('dl');
  const rows = [['trace', json.name], ['process', `${json.process} ${json.pid}`], ['recorded by', `kpytrace ${json.version || '?'}`],
                ['began', new Date(Number(BigInt(json.first_ns) / 1000000n)).toISOString()], ['duration', showTime(json.end)],
                ['calls', showCount(json.stats.calls)], ['threads', showCount(json.tracks.length)]];
  if (json.command) rows.splice(2, 0, ['command', json.command]);
  for (const [name, text] of rows) list.append(element('dt', name), element('dd', visible(text)));
  return list;
}

/* Fills the tab. Returns the number of warnings. */
function showNotes(model, select) {
  const place = document.getElementById('notes');
  const warnings = model.sections.flatMap(losses);
  const list = element('ul');
  for (const text of warnings) list.append(element('li', text, {className: 'warn'}));
  countFlags(model).forEach((count, i) => {
    if (count) list.append(element('li', `${showCount(count)} calls or spans: ${FLAGS[i][1]}`));
  });
  const {count, ran} = model.tasksLeftOut;
  if (count) {
    list.append(element('li', `${showCount(count)} tasks of asyncio, which ran ${showTime(ran)}, have no track: `
      + `only the ${showCount(MAX_TASKS)} tasks that ran longest do. Their resumes are in the threads’ tracks, with the task’s name.`));
  }
  if (!list.children.length) list.append(element('li', 'No event was dropped, and every call is complete.'));
  const rows = collections(model);
  for (const json of model.sections) {
    const title = model.sections.length > 1 ? visible(`${json.process} ${json.pid}`) : 'The trace';
    place.append(element('h2', title), about(json));
  }
  place.append(element('h2', 'Missing data'), list, element('h2', 'Garbage collections'));
  if (rows.length) place.append(collectionTable(rows, select));
  else place.append(element('p', 'The trace has no garbage collections: kpytrace run --gc records them.'));
  return warnings.length;
}
