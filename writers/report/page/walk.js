/* walk.js: goes from call to call by the keyboard: to the caller, the first callee, and the calls beside. */

const STEPS = {ArrowUp: 'out', ArrowDown: 'in', ArrowLeft: 'before', ArrowRight: 'after'};

/* Returns the visible span next to SPAN in its row, or undefined. */
function beside(track, span, by) {
  const {rowItems, rowAt, rowOf} = track, row = rowOf[span];
  const place = firstWhere(rowAt[row], rowAt[row + 1], (k) => rowItems[k] >= span) + by;
  return place >= rowAt[row] && place < rowAt[row + 1] ? rowItems[place] : undefined;
}

/* Returns the first callee of SPAN that is not left out, or undefined. */
function firstInside(track, span) {
  const {rowItems, rowAt, rowOf, rows, start, end} = track, row = rowOf[span] + 1;
  if (row >= rows) return undefined;
  const place = firstWhere(rowAt[row], rowAt[row + 1], (k) => rowItems[k] > span);
  const inside = place < rowAt[row + 1] ? rowItems[place] : undefined;
  return inside !== undefined && start[inside] < end[span] && track.shownParent[inside] === span ? inside : undefined;
}

/* Returns the first span that ends after a time, of the first lane that has one. */
function firstInView({bands, view}) {
  for (const {lane} of bands) {
    if (!lane || lane.folded) continue;
    for (const track of lane.within(view.from, view.to, 0)) {
      const found = track.rows ? firstWhere(0, track.rowAt[1], (k) => track.end[track.rowItems[k]] > view.from) : 0;
      if (track.rows && found < track.rowAt[1]) return {track, span: track.rowItems[found]};
    }
  }
  return null;
}

/* Returns the place that is one step from what is selected in the timeline, or null. */
function walk(timeline, step) {
  const {selected} = timeline;
  if (!selected || selected.mark) return firstInView(timeline);
  const {track, span} = selected;
  const to = step === 'out' ? track.shownParent[span] : step === 'in' ? firstInside(track, span) : beside(track, span, step === 'after' ? 1 : -1);
  return to === undefined || to < 0 ? null : {track, span: to};
}
