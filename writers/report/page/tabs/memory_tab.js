/* memory_tab.js: the tab of a memory recording: bytes over time, and the flame graph of the blocks that were alive at the
 * peak, at the end or at a moment, of all, or of the temporary ones. Tables of earlier versions have no bytes over time. */

class MemoryTab {
  /* NOTIFY: called with the flame graph and the clicked node, or null. */
  constructor(tables, notify) {
    this.tables = tables;
    this.names = memoryNames(tables);
    this.flame = new Flame(byId('memory-rows'), showBytes, (node) => notify(this.flame, node));
    for (const [value, text] of MEMORY_TIMES) byId('memory-at').append(new Option(text, value));
    if (tables.temporary) byId('memory-at').append(new Option('Temporary allocations', 'temporary'));
    byId('memory-device').append(new Option('All devices', -1));
    tables.devices.forEach((name, i) => byId('memory-device').append(new Option(visible(name), i)));
    if (tables.series?.last[0].length) this.curve = new MemoryCurve(byId('memory-curve'), tables, (moment) => this.choose(moment));
    byId('memory-curve').hidden = !this.curve;
    byId('memory-at').onchange = byId('memory-device').onchange = () => this.set();
    byId('memory-reset').onclick = () => this.flame.zoom(0);
    this.set();
  }

  get device() {
    return Number(byId('memory-device').value);
  }

  /* Shows a moment, which becomes the last choice of the list, or the peak (-1). */
  choose(moment) {
    const list = byId('memory-at');
    const known = [...list.options].find((option) => option.value === 'moment');
    const option = known ?? new Option('', 'moment');
    if (moment < 0) {
      list.value = 'peak';
    } else {
      option.text = `${showTime(this.tables.moments[moment][0])} after the begin`;
      option.moment = moment;
      if (!known) list.append(option);
      list.value = 'moment';
    }
    this.set();
  }

  set() {
    const {tables} = this;
    const [choice] = byId('memory-at').selectedOptions;
    const amounts = memoryAmounts(tables, choice.value, choice.moment);
    const tree = memoryTree(tables, amounts, this.device);
    const blocks = tree.calls.reduce((sum, count) => sum + count, 0);
    this.flame.set(tree, this.names);
    const guessed = tables.sample_bytes ? `, estimated from samples, one byte in ${showCount(tables.sample_bytes)}` : '';
    const lost = tables.entries_dropped ? `; ${showCount(tables.entries_dropped)} entries were dropped` : '';
    const within = choice.value === 'temporary' ? `, freed before their thread allocated ${tables.temporary_within} more` : '';
    byId('memory-text').textContent = `${showBytes(tree.total[0])} in ${showCount(blocks)} blocks${within}${guessed}${lost}`;
    if (this.curve) {
      this.curve.moment = choice.value === 'moment' ? choice.moment : null;
      this.curve.set(this.device);
    }
    this.change();
  }

  /* Draws again: the size or the theme has changed. */
  change() {
    if (byId('memory').hidden) return;
    if (this.curve) this.curve.draw();
    this.flame.change();
  }
}
