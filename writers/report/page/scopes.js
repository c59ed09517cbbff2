/* scopes.js: what a page is of, in words: its title, and the choices of what the flame graph and the tables add up. */

const MAX_CHOICES = 1000; // of tracks; a longer list is not usable

/* Returns what the flame graph and the tables can be of: {name, tracks}. Tasks are left out, since their resumes
 * are calls of threads, too. The busiest tracks are first. */
function scopesOf(model, layout) {
  const tracks = model.tracks.filter((track) => track.count && !track.isTask);
  if (model.sides.length) return comparedScopes(model, tracks);
  const pools = layout.pools.map(({name, tracks: some}) => ({name: `${name}  ${showCount(some.length)} threads`, tracks: some}));
  const processes = new Map();
  for (const track of tracks) {
    const {process} = track.group;
    if (!processes.has(process)) processes.set(process, []);
    processes.get(process).push(track);
  }
  const areMany = model.sections.length > 1, named = (track) => (areMany ? `${track.group.process}: ${track.name}` : track.name);
  const single = tracks.slice().sort((a, b) => b.busy - a.busy).slice(0, MAX_CHOICES).map((track) => ({name: named(track), tracks: [track]}));
  return [{name: 'All threads', tracks}, ...(areMany ? [...processes].slice(0, MAX_CHOICES).map(([name, some]) => ({name, tracks: some})) : []),
          ...pools, ...single];
}

/* Returns what the page is of: the name of its file, the two that are compared, or its first process and how many
 * there are. */
function titleOf({sections, sides}) {
  const names = sections.map(({name}) => visible((name || 'memory').split('/').pop()));
  if (sides.length) return names.join(' → ');
  if (names.length > 1) return `${visible(sections[0].process)} and ${showCount(names.length - 1)} more process${names.length === 2 ? '' : 'es'}`;
  return names[0] ?? 'memory';
}

/* Of two recordings that are compared: both, each, and the threads of one name. */
function comparedScopes({sides}, tracks) {
  const names = new Map();
  for (const track of tracks) {
    const name = track.name.split('  ')[0];
    if (!names.has(name)) names.set(name, []);
    names.get(name).push(track);
  }
  const side = (wanted) => tracks.filter(({group}) => sides[group.owner] === wanted);
  return [{name: 'Both recordings', tracks}, {name: 'Before', tracks: side('before')}, {name: 'After', tracks: side('after')},
          ...[...names].slice(0, MAX_CHOICES).map(([name, some]) => ({name, tracks: some}))];
}
