"""kpytrace convert and info: the commands that read one recording."""

from __future__ import annotations

import os
import sys
import time

from . import cost, memory, report
from .arguments import HELP, QUIET, RECOVER, Argument, Usage, parse_command, row_count
from .formatting import amount, shown
from .kpt_file import KptFile


TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._files.kpt_header import File

_PARTS = ("calls", "memory")
_OF_MEMORY, _OF_EITHER = (".pickle", ".tables.json"), (".json", ".pftrace")


def _part(source: str, header: File | None, path: str, options: dict[str, str]) -> str:
    """Returns which part of a file is converted to `path`: calls or memory. The calls of .kpt and .html are not alone."""
    found = (header is None or header.has_calls, header is not None and header.has_memory)
    wanted = options.get("part")
    if wanted is not None and wanted not in _PARTS:
        raise Usage(f"--part must be calls or memory, not {wanted}")
    if wanted is not None and not found[_PARTS.index(wanted)]:
        raise Usage(f"{source} has no recording of {wanted}")
    if found != (True, True):
        return _PARTS[not found[0]]
    if wanted is not None and path.endswith((".kpt", ".html")):
        raise Usage(f"{os.path.splitext(path)[1]} has both parts: leave out --part")
    if wanted is None and path.endswith(_OF_EITHER) and not path.endswith((".tables.json", ".speedscope.json")):
        raise Usage(f"{source} has calls and memory, and {os.path.splitext(path)[1]} can have either: add --part calls or "
                    f"--part memory")
    return wanted or ("memory" if path.endswith(_OF_MEMORY) else "calls")


def _convert_memory(source: str, path: str, options: dict[str, str]) -> int:
    from .._api.memory import SUFFIXES

    if "no-compress" in options:
        raise Usage("a recording of memory is always packed: leave out --no-compress")
    if not path.endswith(tuple(suffix for suffix in SUFFIXES if suffix != ".kpt")):
        raise Usage(f"{source} is a recording of memory, which becomes .pickle, .json, .pftrace, .html or .tables.json")
    began = time.perf_counter()
    memory.convert(source, path, "recover" in options)
    if "quiet" not in options:
        print(f"kpytrace: {os.path.getsize(path):,} bytes in {time.perf_counter() - began:.2f} s: {path}",
              file=sys.stderr)
    return 0


def convert(words: list[str]) -> int:
    usage = """\
usage: kpytrace convert [OPTION]... IN OUT

Writes the trace of a .kpt file, or of one in Chrome's JSON format (.json, .json.gz), in the format
of OUT's suffix: .json, .pftrace, .speedscope.json, .collapsed, .html, also with .gz, or .kpt itself,
which completes a cut-off file. OUT may be -, stdout, which gets JSON.
A recording of memory becomes .pickle for torch's memory viewer, .json, .pftrace, .html or
.tables.json. Of a file with both, .kpt and .html have both."""
    known = (Argument("part", "PART", "calls or memory: what .json and .pftrace have of a file with both"),
             Argument("no-compress", "", "leave the events of a .kpt file as they are, and do not pack them"),
             Argument("compact", "", "write .json with calls as viewers need them: no ids, and files by their last two components"),
             RECOVER, QUIET, HELP)
    parsed = parse_command(words, known, usage, (2,))
    if parsed is None:
        return 0
    options, (source, target) = parsed
    from .._api.options import check_output

    header = memory.header(source)
    if _part(source, header, target, options) == "memory":
        return _convert_memory(source, check_output(target, "recording"), options)
    path = check_output(target)
    if path.endswith(".html") and header and header.has_memory:
        return report.write([source], path, options)
    file = KptFile(source, options)
    if "no-compress" in options:
        file.standalone.no_compress(file.handle)
    if "compact" in options:
        if not path.endswith((".json", ".json.gz")) or path.endswith((".speedscope.json", ".speedscope.json.gz")):
            raise Usage(f"--compact is for Chrome's JSON format, .json, not {os.path.basename(path)}")
        file.standalone.compact(file.handle)
    began = time.perf_counter()
    calls = file.write(path)
    if not file.quiet:
        print(f"kpytrace: {calls:,} calls in {time.perf_counter() - began:.2f} s: {target}",
              file=sys.stderr)
    return 0


def info(words: list[str]) -> int:
    usage = """\
usage: kpytrace info [OPTION]... FILE

Describes a .kpt file, or a trace in Chrome's JSON format: the program, threads, calls, dropped events, and the cost of tracing."""
    known = (Argument("count", "N", "how many threads to list (default: 50; 0: all)", "n"), RECOVER, QUIET, HELP)
    parsed = parse_command(words, known, usage, (1,))
    if parsed is None:
        return 0
    options, (path,) = parsed
    most = row_count(options, 50) or 2**64 - 1
    file = KptFile(path, options)
    bar = file.bar("reading")
    totals = cost.Totals()
    names, threads = file.standalone.thread_sums(file.handle, most, bar, totals.take)
    if bar:
        bar.close()
    calls = totals.python_calls + totals.c_calls
    stats = file.stats
    lines = [("file", f"{path}, {os.path.getsize(path):,} bytes, {file.state}")]
    lines += [(key, file.info[key]) for key in ("recording", "command", "python", "process", "name", "rank", "local_rank", "world_size",
                                                "host", "parent") if key in file.info]
    header = memory.header(path)
    if header and header.has_memory:
        lines.append(("memory", f"{header.memory_events:,} allocations and frees in {header.memory_bytes:,} bytes"))
    if not file.is_imported:
        lines.append(("recorded by", f"kpytrace {file.info.get('version', '?')}"))
    lines += [("calls", f"{calls:,} of {len(totals.functions):,} functions"),
              ("events", f"{stats['events']:,}"), ("dropped", f"{stats['events_dropped']:,}"),
              ("repaired", f"{stats['events_repaired']:,}")]
    if stats["functions_disabled"]:
        lines.append(("switched off", f"{stats['functions_disabled']:,} functions"))
    lines += [("not recorded", text) for text in file.missing()]
    per_call = cost.measure(file.standalone, file.plugin) if calls and not file.is_imported else None
    if per_call:
        lines.append(("tracing cost", cost.line(totals, per_call, file.info)))
    if "dump" in file.info:
        lines.append(("dump", file.info["dump"]))
    lines += _gpu_lines(file)
    for name, value in lines:
        print(f"{name + ':':<14}{shown(value)}")
    print("threads:")
    for name, count, own in threads:
        print(f"  {count:>14,} calls {amount(own):>12}  {shown(name.decode('utf-8', 'replace')) or '(no name)'}")
    if names > len(threads):
        count, own = (total - sum(row[i] for row in threads) for i, total in ((1, calls), (2, totals.own_ns)))
        print(f"  {count:>14,} calls {amount(own):>12}  {names - len(threads):,} more threads (all: -n 0)")
    return 0


def _gpu_lines(file: KptFile) -> list[tuple[str, str]]:
    """Returns the lines of `info` about GPUs."""
    _, kernels, dropped, lost = file.standalone.gpu(file.handle)
    report = file.standalone.gpu_report(file.handle)
    lines = [("gpu", f"{device['index']} {device['name'].decode('utf-8', 'replace')}, "
              f"{device['kernels']:,} kernels, busy {amount(device['busy_ns'])}")
             for device in report["devices"]]
    if kernels or dropped or lost:
        lines.append(("gpu events", f"{report['events']:,}, {dropped:,} dropped, {lost:,} kernels lost to "
                      f"another tool"))
        if file.info.get("gpu_calls") == "work":
            lines.append(("gpu calls", "those that start work, wait, allocate memory or load code"))
        else:
            lines.append(("gpu calls", "nearly all"))
    elif "no_gpu" in file.info:
        lines.append(("gpu", f"not recorded: {file.info['no_gpu']}"))
    return lines
