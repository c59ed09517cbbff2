/* operators.js: torch's operators and annotations: their table, the GPU time of what they launched, and the
 * function of a forward operator. Their layer in the timeline is a matter of Track.layOut. */

const OPERATOR_COLUMNS = COLUMNS.map(([key, title, show]) => [key, key === 'name' ? 'Operator or annotation' : title, show]);
const GPU_COLUMNS = [['gpuOwn', 'GPU own', showTime], ['gpu', 'GPU', showTime]];

/* Returns the innermost operator or annotation around each span of a track; -1: none. */
function operatorsAround({count, parent, nameOf}, kinds) {
  const around = new Int32Array(count);
  for (let i = 0; i < count; i++) {
    const outer = parent[i];
    around[i] = outer < 0 || kinds[nameOf[outer]] ? outer : around[outer];
  }
  return around;
}

/* Returns the GPU time of what each operator and annotation of a thread launched itself, by span, or null if the
 * trace has no CUDA calls of that thread. */
function gpuOwnTimes({kinds}, links, track) {
  links.index();
  const calls = track.tid ? links.callers.get(`${track.group.owner} ${track.tid}`) : undefined;
  if (!calls) return null;
  const times = new Float64Array(track.count);
  for (let i = 0; i < calls.count; i++) {
    let at = links.around(track, calls.start[i]);
    while (at >= 0 && !kinds[track.nameOf[at]]) at = track.parent[at];
    if (at < 0) continue;
    for (const {track: stream, span} of links.ends(calls, i, false)) times[at] += stream.end[span] - stream.start[span];
  }
  return times;
}

/* Returns a row for each operator and annotation, as topRows does for functions; own time is without the
 * operators and annotations inside. */
function operatorRows(model, links, tracks) {
  const {kinds} = model;
  const rows = [];
  for (const track of tracks) {
    if (!track.hasOperators) continue;
    const {start, end, nameOf} = track, {flags} = track.more;
    const around = operatorsAround(track, kinds);
    const gpuOwn = gpuOwnTimes(model, links, track), gpu = gpuOwn?.slice();
    for (let i = track.count - 1; gpu && i >= 0; i--) if (around[i] >= 0) gpu[around[i]] += gpu[i];
    for (let i = 0; i < track.count; i++) {
      const name = nameOf[i], took = end[i] - start[i];
      if (!kinds[name]) continue;
      const row = rows[name] ??= {name, calls: 0, own: 0, total: 0, longest: -1, gpuOwn: 0, gpu: 0, track, span: i};
      let outer = around[i];
      while (outer >= 0 && nameOf[outer] !== name) outer = around[outer];
      if (!flags || !(flags[i] & CONTINUED)) row.calls++;
      row.own += took;
      if (around[i] >= 0) rows[nameOf[around[i]]].own -= took;
      if (outer < 0) row.total += took;
      if (gpu) row.gpuOwn += gpuOwn[i];
      if (gpu && outer < 0) row.gpu += gpu[i];
      if (took > row.longest) Object.assign(row, {longest: took, track, span: i});
    }
  }
  return rows.filter((row) => row);
}

class OperatorTable extends TopTable {
  constructor(table, model, chosen) {
    super(table, model, chosen, OPERATOR_COLUMNS);
  }

  set(rows) {
    const more = rows.some((row) => row.gpu) ? GPU_COLUMNS : [];
    this.columns = [...OPERATOR_COLUMNS.slice(0, -1), ...more, OPERATOR_COLUMNS[OPERATOR_COLUMNS.length - 1]];
    super.set(rows);
  }
}

/* Returns the function of the forward operator that a span belongs to, or '' if it is no work of autograd. A node
 * has it; what is inside the node, and the engine's operator around it, belong to the same. */
function forwardOf(model, track, span) {
  if (!track.more.forward || model.kinds[track.nameOf[span]] !== OPERATOR) return '';
  for (let at = span; at >= 0; at = track.parent[at])
    if (track.get('forward', at)) return model.forwards[track.get('forward', at) - 1];
  for (let at = span + 1; at < track.count && track.start[at] < track.end[span]; at++)
    if (track.parent[at] === span && track.get('forward', at)) return model.forwards[track.get('forward', at) - 1];
  return '';
}
