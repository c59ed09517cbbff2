"""kpytrace et: the commands that read execution traces, of kpytrace or of torch's own observer."""

from __future__ import annotations

import collections
import os
import sys

from .._et.trace import Trace, naming, read_json
from .formatting import shown
from .arguments import Argument, Usage, parse_command, row_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_HELP = Argument("help", "", "print this", "h")
_COUNT = Argument("count", "N", "how many rows (default: 20; 0: all)", "n")
_PLAIN = Argument("plain", "", "leave out the attributes that kpytrace adds to the schema")

USAGE = """\
usage: kpytrace et COMMAND ...

  kpytrace et info TRACE                  describes an execution trace
  kpytrace et check TRACE                 lists the problems of a trace; exits with status 1 if there are any
  kpytrace et link TRACE PROFILE OUT      adds the times and kernels of a Kineto trace of the same run
  kpytrace et diff BEFORE AFTER           compares two runs; exits with status 1 if they differ
  kpytrace et convert TRACE OUT           writes .json, .json.gz, or a timeline, .chrome.json
  kpytrace et recover TRACE [OUT]         completes a trace whose program was killed

TRACE is .json or .json.gz, of kpytrace or of torch's own observer. COMMAND --help has the options."""


def info(words: list[str]) -> int:
    parsed = parse_command(words, (_COUNT, _HELP), "usage: kpytrace et info [OPTION]... TRACE", (1,))
    if parsed is None:
        return 0
    options, (path,) = parsed
    count = row_count(options, 20)
    trace = Trace.read(path)
    operators = list(trace.operators())
    names = collections.Counter(node.name for node in operators)
    kinds = {0: "operators", 1: "backward", 7: "annotations"}
    scopes = collections.Counter(kinds.get(node.attrs.get("scope", 0), "others") for node in operators)
    lines = [("file", f"{path}, {os.path.getsize(path):,} bytes"), ("schema", trace.schema),
             ("process", f"{trace.data.get('pid')}, {trace.data.get('time')}"),
             ("nodes", f"{len(trace.nodes):,}: " + ", ".join(f"{n:,} {what}" for what, n in scopes.items())),
             ("threads", f"{len({node.attrs.get('tid') for node in operators}):,}"),
             ("raised", f"{sum('error' in node.attrs for node in operators):,}")]
    dropped = trace.own.get("dropped_ops", 0)
    if dropped:
        lines.append(("dropped", f"{dropped:,}"))
    for name, value in lines:
        print(f"{name + ':':<10}{shown(value)}")
    took: dict[str, int] = collections.Counter()
    for node in operators:
        took[node.name] += node.own.get("dur_ns", 0)
    print(f"{'calls':>10}  {'ms in all':>12}  operator")
    for name, calls in names.most_common(count):
        print(f"{calls:>10,}  {took[name] / 1e6:>12,.3f}  {shown(name)}")
    return 0


def check(words: list[str]) -> int:
    parsed = parse_command(words, (_COUNT, _HELP), "usage: kpytrace et check [OPTION]... TRACE", (1,))
    if parsed is None:
        return 0
    from .._et.check import check as problems

    options, (path,) = parsed
    count = row_count(options, 20)
    trace = Trace.read(path, must_be_sound=False)
    found = list(problems(trace))
    for line in found[:count]:
        print(shown(line))
    print(f"{shown(path)}: {len(trace.nodes):,} nodes, "
          f"{f'{len(found):,} problems' if found else 'no problems'}", file=sys.stderr)
    return 1 if found else 0


def link(words: list[str]) -> int:
    parsed = parse_command(words, (_HELP,), "usage: kpytrace et link [OPTION]... TRACE PROFILE OUT", (3,))
    if parsed is None:
        return 0
    from .._et.link import link as link_both

    trace, profile = Trace.read(parsed[1][0]), read_json(parsed[1][1])
    with naming(parsed[1][1]):
        links = link_both(trace, profile)
    trace.write(parsed[1][2])
    print(f"{links.linked:,} operators linked, with {links.kernels:,} kernels; "
          f"{len(links.only_in_trace):,} only in the execution trace, {len(links.only_in_profile):,} only in "
          f"the profile: {parsed[1][2]}", file=sys.stderr)
    return 0 if links.linked or not any(True for _ in trace.operators()) else 1


def diff(words: list[str]) -> int:
    known = (_COUNT, Argument("times", "", "also print the times of operators", "t"), _HELP)
    parsed = parse_command(words, known, "usage: kpytrace et diff [OPTION]... BEFORE AFTER", (2,))
    if parsed is None:
        return 0
    from .._et.compare import Difference

    options, paths = parsed
    count = row_count(options, 20)
    found = Difference(*(Trace.read(path) for path in paths))
    print(f"{found.same:,} operators are the same, {len(found.changes):,} kinds differ")
    if found.changes:
        print(f"{'before':>10}  {'after':>10}  operator and inputs")
    for change in found.changes[:count]:
        print(f"{change.before:>10,}  {change.after:>10,}  {shown(f'{change.name} {change.inputs}')}")
    if "times" in options:
        print(f"{'µs before':>10}  {'µs after':>10}  {'ratio':>6}  operator")
        for name, a, b in found.durations[:count]:
            print(f"{a / 1000:>10,.1f}  {b / 1000:>10,.1f}  {b / a if a else 0:>6.2f}  {shown(name)}")
    return 1 if found else 0


def convert(words: list[str]) -> int:
    parsed = parse_command(words, (_PLAIN, _HELP), "usage: kpytrace et convert [OPTION]... TRACE OUT", (2,))
    if parsed is None:
        return 0
    from .._et.convert import convert as write

    write(Trace.read(parsed[1][0]), parsed[1][1], "plain" in parsed[0])
    return 0


def recover(words: list[str]) -> int:
    parsed = parse_command(words, (_HELP,), "usage: kpytrace et recover TRACE [OUT]", (1, 2))
    if parsed is None:
        return 0
    from .._api import native

    path, out = parsed[1][0], parsed[1][-1]
    journal = path if path.endswith(".journal") else f"{path}.journal"
    if out.endswith(".journal"):
        out = out[:-len(".journal")]
    if not os.path.exists(journal):
        raise Usage(f"{journal}: the journal does not exist; a completed trace has none")
    plugin = native.load()
    native.standalone.recover(plugin, journal, os.path.abspath(out))
    trace = Trace.read(out)
    print(f"{len(trace.nodes):,} nodes: {out}; {journal} can be removed now", file=sys.stderr)
    return 0


_COMMANDS: dict[str, Callable[[list[str]], int]] = {"info": info, "check": check, "link": link, "diff": diff,
                                                    "convert": convert, "recover": recover}


def main(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(USAGE)
        return 0 if words else 2
    if words[0] not in _COMMANDS:
        raise Usage(f"unknown command `kpytrace et {words[0]}`; the commands are {', '.join(_COMMANDS)}")
    return _COMMANDS[words[0]](words[1:])
