/* search.js: finds the functions whose name or file contains the text of the search box, and their calls, in
 * time order over all tracks. */

class Search {
  constructor(model) {
    this.model = model;
    this.set('');
  }

  set(text) {
    const wanted = text.trim().toLowerCase();
    const {names, tracks, kinds, hidesOperators} = this.model;
    this.text = wanted;
    this.is = null; // by name; null: no search
    this.spans = []; // by track: the spans found
    this.count = 0;
    if (!wanted) return;
    this.is = matches(names, wanted);
    if (hidesOperators) this.is.forEach((_, name) => { if (kinds[name] === OPERATOR) this.is[name] = 0; });
    this.spans = tracks.map((track) => this.found(track, false));
    // A task's resumes are also calls of threads, so tasks are searched only if nothing else is found.
    if (!this.count) this.spans = tracks.map((track) => this.found(track, true));
  }

  found(track, areTasks) {
    let found = 0;
    if (track.isTask !== areTasks) return new Uint32Array(0);
    for (let i = 0; i < track.count; i++) found += this.is[track.nameOf[i]];
    const spans = new Uint32Array(found);
    for (let i = 0, at = 0; at < found; i++) if (this.is[track.nameOf[i]]) spans[at++] = i;
    this.count += found;
    return spans;
  }

  /* Returns how many spans of a track are before the cursor {number, span, at}. Equal starts are ordered by
   * track. */
  before(number, cursor) {
    const spans = this.spans[number], {start} = this.model.tracks[number];
    if (number === cursor.number) return firstWhere(0, spans.length, (i) => spans[i] >= cursor.span);
    const isBehind = (at) => at > cursor.at || (at === cursor.at && number > cursor.number);
    return firstWhere(0, spans.length, (i) => isBehind(start[spans[i]]));
  }

  /* Returns the nearest span after the cursor, or before it if step is -1, as a cursor. */
  nearest(cursor, step) {
    let best = null;
    this.spans.forEach((spans, number) => {
      let place = this.before(number, cursor);
      if (step < 0) place--;
      else if (number === cursor.number && spans[place] === cursor.span) place++;
      if (place < 0 || place >= spans.length) return;
      const at = this.model.tracks[number].start[spans[place]];
      if (!best || (step > 0 ? at < best.at : at >= best.at)) best = {number, span: spans[place], at};
    });
    return best;
  }

  /* Returns the next span after `selected`, or before it if step is -1, as {track, span, place}. Continues at
   * the other end. */
  step(selected, step) {
    if (!this.count) return null;
    const {tracks} = this.model;
    let best = null;
    if (selected && selected.span !== undefined) {
      const number = tracks.indexOf(selected.track);
      best = this.nearest({number, span: selected.span, at: selected.track.start[selected.span]}, step);
    }
    best ??= this.nearest({number: -1, span: -1, at: step > 0 ? -Infinity : Infinity}, step);
    const place = tracks.reduce((sum, _, number) => sum + this.before(number, best), 0);
    return {track: tracks[best.number], span: best.span, place};
  }
}

function matches(names, wanted) {
  return Uint8Array.from(names, ({text, file}) => text.toLowerCase().includes(wanted) || file.toLowerCase().includes(wanted));
}
