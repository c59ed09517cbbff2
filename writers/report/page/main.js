/* main.js: connects the parts of the page: tabs, search, theme, and the effect of a click in one part on
 * another. */

const byId = (id) => document.getElementById(id);
/* In order: [name, id of its section, whether a page has it]. */
const TABS = [
  ['summary', 'summary-tab', (page) => page.hasSummary],
  ['timeline', 'timeline', (page) => page.hasTrace],
  ['flame', 'flame', (page) => page.hasTrace],
  ['top', 'top', (page) => page.hasTrace],
  ['operators', 'operators', ({model}) => model.kinds],
  ['steps', 'steps', ({model}) => model.steps.length],
  ['memory', 'memory', ({model}) => model.memories.length],
  ['notes', 'notes-tab', (page) => page.hasTrace],
];

class Page {
  constructor(model) {
    this.model = model;
    this.search = new Search(model);
    this.tab = null;
    this.hasTrace = model.tracks.length + model.sections.length > 0;
    this.hasSummary = model.sections.some((json) => json.findings);
    const available = TABS.filter(([, , isThere]) => isThere(this)).map(([name]) => name);
    for (const button of byId('tabs').children) {
      button.hidden = !available.includes(button.dataset.tab);
      button.onclick = (event) => {
        this.show(button.dataset.tab);
        if (event.detail) button.blur(); // after a click by the pointer, arrow keys belong to the view
      };
      button.onkeydown = (event) => this.moveTab(event);
    }
    for (const [name, id] of TABS) {
      const button = byId('tabs').querySelector(`[data-tab=${name}]`);
      button.id = `tab-${name}`;
      button.setAttribute('aria-controls', id);
      byId(id).role = 'tabpanel';
      byId(id).setAttribute('aria-labelledby', button.id);
    }
    this.available = available;
    if (this.hasTrace) this.beginTrace();
    if (model.memories.length) this.beginMemory(model.memories[0]);
    this.beginControls();
    byId('title').textContent = byId('title').title = document.title = titleOf(model);
    byId('message').hidden = true;
    this.show(available[Number(this.hasSummary)]);
  }

  /* --- a trace --- */

  beginTrace() {
    const {model} = this;
    this.timeline = new Timeline(model, this.search);
    this.links = new Links(model);
    this.minimap = new Minimap(this.timeline);
    this.flameTab = new FlameTab(model, (flame, node) => this.tellFrame(flame, node));
    this.flame = this.flameTab.flame;
    this.top = new TopTable(byId('top-table'), model, (row) => this.showRow(row));
    this.beginTimelineBar();
    this.scopes = scopesOf(model, this.timeline.layout);
    for (const id of ['flame-scope', 'top-scope', 'operators-scope']) {
      this.scopes.forEach(({name}, i) => byId(id).append(new Option(name, i)));
      byId(id).onchange = () => this.setScope(byId(id).value);
    }
    byId('more').onclick = () => { this.top.showMore(); this.tellTop(); };
    if (model.kinds) this.beginOperators();
    if (model.steps.length) this.beginSteps();
    if (this.hasSummary) this.beginSummary();
    const warnings = showNotes(model, (found) => this.showSpan(found));
    if (warnings) byId('tabs').querySelector('[data-tab=notes]').append(element('span', '!', {className: 'badge', title: 'calls or events are missing'}));
  }

  get scope() {
    return this.scopes[byId('top-scope').value].tracks;
  }

  beginTimelineBar() {
    const {timeline} = this;
    for (const [order, [text]] of Object.entries(ORDERS)) byId('order').append(new Option(text, order));
    byId('order').onchange = () => timeline.setOrder(byId('order').value);
    byId('zoom-in').onclick = () => timeline.zoom(0.5, timeline.view.width / 2);
    byId('zoom-out').onclick = () => timeline.zoom(2, timeline.view.width / 2);
    byId('zoom-fit').onclick = () => this.fit();
    timeline.listeners.push(() => { byId('timeline-text').textContent = `${showTime(timeline.view.to - timeline.view.from)} in view`; });
  }

  /* Sets the thread of the flame graph and of the table. Each is recomputed when its tab is shown. */
  setScope(value) {
    byId('flame-scope').value = byId('top-scope').value = byId('operators-scope').value = value;
    this.stale = {flame: true, top: true, operators: true};
    this.refresh();
  }

  refresh() {
    if (this.tab === 'flame' && this.stale.flame) {
      this.flameTab.set(this.scope);
      this.stale.flame = false;
    } else if (this.tab === 'top' && this.stale.top) {
      this.top.set(topRows(this.model, this.scope));
      this.stale.top = false;
      this.tellTop();
    } else if (this.tab === 'operators' && this.stale.operators) {
      this.operators.set(operatorRows(this.model, this.links, this.scope));
      this.stale.operators = false;
      this.tellOperators();
    } else if (this.tab === 'steps' && !this.steps.rows.length) {
      this.steps.set(stepRows(this.model));
      this.tellSteps();
    }
  }

  tellTop() {
    byId('top-text').textContent = `${showCount(this.top.shown.length)} functions`;
    byId('more').hidden = !this.top.hidden;
  }

  select(selected) {
    const links = this.links.of(selected), go = (place) => this.showSpan(place);
    this.timeline.select(selected, links);
    if (!selected) hideDetails();
    else if (selected.mark) markDetails(this.model, selected.track, selected.mark, links, go);
    else spanDetails(this.model, selected.track, selected.span, links, go, (name) => this.showAround(name));
  }

  /* Shows the target of a link of the selection. */
  follow(key) {
    const links = this.timeline?.links ?? [];
    const found = links.find((link) => link.key === key) ?? (key === 'g' ? links[links.length - 1] : undefined);
    if (found) this.showSpan(found.to);
  }

  showSpan(found) {
    this.show('timeline');
    if (found.span !== undefined && found.track.hidden?.[found.track.nameOf[found.span]]) this.setOperators(true);
    this.select(found);
    this.timeline.reveal(found);
  }

  /* Shows the longest call of a function, and marks its other calls. */
  showRow({name, track, span}) {
    byId('search').value = this.model.names[name].text;
    this.find();
    this.showSpan({track, span});
  }

  beginSummary() {
    const count = showSummary(this.model, (place) => this.showPlace(place));
    const text = `${showCount(count)} finding${count === 1 ? '' : 's'}`;
    if (count) byId('tabs').querySelector('[data-tab=summary]').append(element('span', count, {className: 'count', title: text}));
  }

  /* Shows a stretch of the summary: the call that it is, or its time if there is none. */
  showPlace({track, span, start, end}) {
    if (track) this.showSpan({track, span});
    else this.showStep({start, end, track});
  }

  tellFrame(flame, node) {
    const name = node === null ? -1 : flame.tree.name[node];
    if (name < 0) hideDetails();
    else if (flame === this.flame) frameDetails(flame, node, this.model.sources.table(name), () => this.showAround(name));
    else frameDetails(flame, node);
  }

  /* Shows the flame graph around a function. */
  showAround(name) {
    this.show('flame');
    this.flameTab.around(name);
  }

  /* --- operators and steps --- */

  beginOperators() {
    this.operators = new OperatorTable(byId('operators-table'), this.model, (row) => this.showRow(row));
    byId('operators-more').onclick = () => { this.operators.showMore(); this.tellOperators(); };
    byId('operators-switch').hidden = false;
    byId('operators-switch').onclick = () => this.setOperators(this.model.hidesOperators);
    // The address keeps the choice.
    const isOn = () => new URLSearchParams(location.hash.slice(1)).get('operators') !== 'off';
    window.addEventListener('hashchange', () => this.setOperators(isOn()));
    this.stale = {flame: true, top: true, operators: true};
    this.setOperators(isOn());
  }

  /* Shows or hides the layer of operators. */
  setOperators(isOn) {
    byId('operators-switch').setAttribute('aria-pressed', isOn);
    byId('operators-switch').textContent = isOn ? 'operators on' : 'operators off';
    if (this.model.hidesOperators === !isOn) return;
    this.model.hideOperators(!isOn);
    location.replace(isOn ? '#' : '#operators=off');
    const {selected} = this.timeline;
    if (selected?.track.hidden?.[selected.track.nameOf[selected.span]]) this.select(null);
    this.timeline.layOut();
    this.find();
    this.setScope(byId('top-scope').value);
    this.redraw();
  }

  tellOperators() {
    byId('operators-text').textContent = `${showCount(this.operators.shown.length)} operators and annotations`;
    byId('operators-more').hidden = !this.operators.hidden;
  }

  beginSteps() {
    this.steps = new StepTable(byId('steps-table'), this.model, (row) => this.showStep(row.step));
    byId('steps-more').onclick = () => { this.steps.showMore(); this.tellSteps(); };
  }

  tellSteps() {
    byId('steps-text').textContent = this.steps.summary;
    byId('steps-more').hidden = !this.steps.hidden;
  }

  /* Fits a step into the timeline. */
  showStep({start, end, track}) {
    this.show('timeline');
    this.select(null);
    this.timeline.showRange(start, end, track);
  }

  /* --- memory --- */

  beginMemory(tables) {
    this.tables = tables;
    this.memoryTab = new MemoryTab(tables, (flame, node) => this.tellFrame(flame, node));
    this.memory = this.memoryTab.flame;
    this.memoryNames = this.memoryTab.names;
  }

  /* --- the page --- */

  show(tab) {
    if (!this.available.includes(tab)) return;
    if (tab !== this.tab) hideDetails();
    this.tab = tab;
    for (const [name, id] of TABS) byId(id).hidden = name !== tab;
    for (const button of byId('tabs').children) {
      button.setAttribute('aria-selected', button.dataset.tab === tab);
      button.tabIndex = button.dataset.tab === tab ? 0 : -1;
    }
    showTip(null);
    if (this.hasTrace) this.refresh();
    this.redraw();
  }

  /* Goes from tab to tab by the arrow keys. */
  moveTab(event) {
    const by = {ArrowLeft: -1, ArrowRight: 1}[event.key], {available, tab} = this;
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    this.show(available[(available.indexOf(tab) + by + available.length) % available.length]);
    byId(`tab-${this.tab}`).focus();
  }

  /* Selects the call that is one step from the selected one. */
  walk(step) {
    const to = this.timeline && this.tab === 'timeline' ? walk(this.timeline, step) : null;
    if (to) this.showSpan(to);
  }

  redraw() {
    if (this.tab === 'timeline') this.timeline.change();
    if (this.tab === 'flame') this.flame.change();
    if (this.tab === 'memory') this.memoryTab.change();
  }

  find() {
    const text = byId('search').value;
    this.search.set(text);
    if (this.memory) this.memory.highlight(this.search.text ? matches(this.memoryNames, this.search.text) : null);
    if (this.hasTrace) {
      this.flameTab.highlight(this.search.is);
      this.top.filter(this.search.is);
      this.tellTop();
      if (this.operators) {
        this.operators.filter(this.search.is);
        this.tellOperators();
      }
      this.timeline.change();
      byId('found').textContent = this.search.text ? `${showCount(this.search.count)} found` : '';
    }
  }

  step(by) {
    if (!this.hasTrace) return;
    const found = this.search.step(this.timeline.selected, by);
    if (!found) return;
    this.showSpan({track: found.track, span: found.span});
    byId('found').textContent = `${showCount(found.place + 1)} of ${showCount(this.search.count)}`;
  }

  fit() {
    if (this.tab === 'flame' || this.tab === 'memory') this[this.tab].zoom(0);
    if (this.tab !== 'timeline') return;
    if (this.timeline.range) this.timeline.show(...this.timeline.range);
    else if (this.timeline.selected) this.timeline.reveal(this.timeline.selected, true);
    else this.timeline.fitAll();
  }

  /* Closes one thing at a time, the last one first. */
  escape() {
    if (document.activeElement === byId('search')) {
      byId('search').value = '';
      byId('search').blur();
      this.find();
    } else {
      hideDetails();
      if (this.timeline) this.timeline.select(null, []);
    }
  }

  setDark(isDark) {
    this.isDark = isDark;
    setTheme(isDark);
    this.redraw();
  }

  beginControls() {
    const dark = matchMedia('(prefers-color-scheme: dark)');
    this.stale = {flame: true, top: true, operators: true};
    this.setDark(dark.matches);
    dark.onchange = () => this.setDark(dark.matches);
    const commands = {
      f: () => this.fit(), t: () => this.setDark(!this.isDark), '?': () => byId('help').showModal(),
      '/': () => byId('search').select(), Escape: () => this.escape(),
      g: () => this.follow('g'), n: () => this.follow('n'), p: () => this.follow('p'),
      o: () => this.operators && this.setOperators(this.model.hidesOperators),
    };
    for (const [key, step] of Object.entries(STEPS)) commands[key] = (event) => event.shiftKey && this.walk(step);
    const first = this.hasSummary ? 0 : 1; // the other tabs keep their numbers
    this.available.forEach((tab, i) => { commands[i + first] = () => this.show(tab); });
    const keys = new Keys(this.timeline, () => this.tab === 'timeline', commands);
    if (this.timeline) {
      new Pointer(this.timeline, keys, (hit) => this.select(hit), (range) =>
        rangeDetails(this.model, range, (row) => this.showSpan(row)));
    }
    byId('theme').onclick = () => this.setDark(!this.isDark);
    byId('help-button').onclick = commands['?'];
    byId('close-help').onclick = () => byId('help').close();
    byId('close-details').onclick = () => this.escape();
    byId('next').onclick = () => this.step(1);
    byId('previous').onclick = () => this.step(-1);
    byId('search').oninput = () => this.find();
    byId('search').onkeydown = (event) => {
      if (event.key === 'Enter') this.step(event.shiftKey ? -1 : 1);
    };
    window.addEventListener('resize', () => this.redraw());
    new ResizeObserver(() => this.redraw()).observe(document.querySelector('main'));
    new ResizeObserver(() => this.redraw()).observe(byId('rows'));
  }
}

document.addEventListener('DOMContentLoaded', async () => {
  try {
    setTheme(matchMedia('(prefers-color-scheme: dark)').matches);
    window.kpytrace = new Page(await readSections()); // for the console and for tests
  } catch (error) {
    byId('message').hidden = false;
    byId('message').textContent = `This report can’t be shown: ${error.message}`;
    throw error;
  }
});
