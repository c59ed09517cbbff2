"""The page of `kpytrace diff`: one table, which a click on a column sorts. The page loads nothing from
elsewhere."""

from __future__ import annotations

import html

from .formatting import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._files.diff_statistics import Change

_HEAD = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>kpytrace diff</title>
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<style>
:root { color-scheme: light dark; }
body { font: 14px/1.4 system-ui, sans-serif; margin: 1.5em; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .2em .6em; text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th { cursor: pointer; border-bottom: 2px solid; position: sticky; top: 0; background: Canvas; }
th[aria-sort=ascending]::after { content: " \\25b2"; }
th[aria-sort=descending]::after { content: " \\25bc"; }
td:last-child, th:last-child { text-align: left; font-family: ui-monospace, monospace; white-space: normal; }
tbody tr:nth-child(even) { background: color-mix(in srgb, CanvasText 6%, Canvas); }
.slower { color: light-dark(#b00020, #ff8a8a); } .faster { color: light-dark(#00652e, #7ee2a0); }
.unsure { opacity: .55; }
input { font: inherit; padding: .3em; width: 24em; max-width: 100%; }
</style></head><body>
"""
_SCRIPT = """\
<script>
const body = document.querySelector("tbody"), heads = [...document.querySelectorAll("th")];
function value(row, i) {
  const cell = row.cells[i], number = cell.dataset.value;
  return number === undefined ? cell.textContent : number === "" ? -Infinity : Number(number);
}
heads.forEach((head, i) => head.addEventListener("click", () => {
  const down = head.getAttribute("aria-sort") !== "descending";
  heads.forEach(other => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const rows = [...body.rows].sort((a, b) => {
    const x = value(a, i), y = value(b, i), order = x < y ? -1 : x > y ? 1 : 0;
    return down ? -order : order;
  });
  body.append(...rows);
}));
document.querySelector("input").addEventListener("input", event => {
  const wanted = event.target.value.toLowerCase();
  for (const row of body.rows) row.hidden = !row.cells[row.cells.length - 1].textContent.toLowerCase().includes(wanted);
});
</script></body></html>
"""
_COLUMNS = (("before, ms", "own_before"), ("after, ms", "own_after"), ("difference", "difference"), ("ratio", "ratio"),
            ("± (95 %)", "margin"), ("p", "p"), ("calls before", "calls_before"), ("calls after", "calls_after"),
            ("total before", "total_before"), ("total after", "total_after"))
_GPU_COLUMNS = (("GPU before", "gpu_own_before"), ("GPU after", "gpu_own_after"))


def _cell(change: Change, key: str) -> str:
    value = getattr(change, key)
    if value is None:
        return '<td data-value="">'
    if key == "ratio" or key == "p":
        text = f"{value:.3f}"
    elif key.startswith("calls"):
        text = f"{value:,.0f}"
    else:
        text = f"{value / 1e6:,.3f}"
    return f'<td data-value="{value!r}">{text}'


def _row(change: Change, columns: Sequence[tuple[str, str]]) -> str:
    kind = "slower" if change.difference > 0 else "faster"
    if change.is_sure is False:
        kind += " unsure"
    cells = "".join(_cell(change, key) for _, key in columns)
    return f'<tr class="{kind}">{cells}<td>{html.escape(shown(change.name))}\n'


def page(changes: Sequence[Change], before: Sequence[str], after: Sequence[str], what: str = "function",
         has_gpu: bool = False) -> str:
    """Returns the page. WHAT is what a row is, and HAS_GPU whether rows have times of GPUs."""
    columns = (*_COLUMNS, *(_GPU_COLUMNS if has_gpu else ()))
    heads = "".join(f"<th>{html.escape(text)}" for text, _ in columns)
    names = (", ".join(html.escape(shown(path)) for path in side) for side in (before, after))
    before_ns, after_ns = (sum(getattr(change, key) for change in changes) for key in ("own_before", "own_after"))
    return "".join((
        _HEAD, "<h1>kpytrace diff</h1>\n<p>Before: {}<br>After: {}</p>\n".format(*names),
        f"<p>All calls together: {before_ns / 1e6:,.3f} ms before, {after_ns / 1e6:,.3f} ms after. Times are means over "
        f"the runs, in ms, of the {what} alone (own) and with its callees (total). Pale rows are not significant.</p>\n",
        f'<p><input type="search" placeholder="{what}" aria-label="filter by {what}"></p>\n',
        f"<table><thead><tr>{heads}<th>{what}</thead>\n<tbody>\n", *(_row(change, columns) for change in changes),
        "</tbody></table>\n", _SCRIPT))
