"""kpytrace run: replaces its own process with `python script.py`, with KPYTRACE or KPYTRACE_MEMORY set. The
program's exit status, arguments, __main__, standard streams, signals and tracebacks are the same as those of
`python script.py`."""

from __future__ import annotations

import os
import sys

from .._api.options import OPTIONS, STDOUT, Option, from_environment
from .._processes import autostart, process_info
from .arguments import Argument, Usage, columns, parse

_VALUES = {"max_events": "N", "max_bytes": "SIZE", "on_full": "WORD", "ring": "10s|64MB",
           "dump_on": "WHAT", "dumps_per_hour": "N", "ring_ns": "TIME", "ring_bytes": "SIZE", "min_duration_ns": "TIME", "max_depth": "N",
           "overhead_permille": "N", "tool_id": "N", "flush_ns": "TIME", "include": "PATTERN",
           "exclude": "PATTERN"}
_NEGATED = {"c_calls": "leave out functions written in C",
            "tasks": "give asyncio's tasks no tracks of their own",
            "compress": "do not pack the events in .kpt files, which then have 16 bytes a call instead of 3 to 5"}
_OWN = (
    Argument("output", "FILE", "the file of the trace; its suffix selects the format: .json, .pftrace, "
             ".kpt, .html, .speedscope.json, .collapsed, and each but .kpt also with .gz "
             "(default: kpytrace.kpt); - is stdout", "o"),
    Argument("memory", "FILE", "record the memory that Python allocates, and write it to this file: .kpt, which is "
             "written meanwhile and converted later, .html, a page, .pickle for torch's memory viewer, .json, "
             ".pftrace, or .tables.json for `kpytrace memory`. Calls are then recorded only if --output is given; both may "
             "name one .kpt file, which then has both"),
    Argument("memory-sample", "SIZE", "sample one byte of memory in so many, 512kB, which costs next to "
             "nothing (default: every block)"),
    Argument("memory-entries", "N", "keep the last so many allocations and frees (default: all)"),
    Argument("memory-aggregate", "", "keep live bytes and totals by stack, and no history, so that nothing grows in a run of "
             "days; the file is .html or .tables.json"),
    Argument("no-gpu", "", "do not record GPUs"),
    Argument("gpu-calls", "", "record GPUs with nearly every call of CUDA, waits and CUPTI's overhead; this slows a "
             "program with many short calls"),
    Argument("torch-shapes", "", "record torch's operators with the sizes, types, strides and values of their inputs"),
    Argument("children", "", "also record every Python process that the program starts or forks, and merge their traces "
             "at the end; each has a .kpt file in OUTPUT.children, and with --memory a memory file beside it"),
    Argument("quiet", "", "print nothing", "q"),
    Argument("help", "", "print this", "h"),
)


_MEMORY_OPTIONS = {"memory-sample": "sample_bytes", "memory-entries": "max_entries", "memory-aggregate": "aggregate"}


def _argument(option: Option) -> Argument:
    name = option.name.replace("_", "-")
    if option.name in _NEGATED:
        return Argument(f"no-{name}", "", _NEGATED[option.name])
    text = option.text
    if option.name in ("include", "exclude"):
        text += "; may be given several times"
    return Argument(name, _VALUES.get(option.name, ""), text)


_ARGUMENTS = _OWN + tuple(_argument(option) for option in OPTIONS.values() if option.name != "memory")

_USAGE = """\
usage: kpytrace run [OPTION]... SCRIPT [ARGUMENT]...
       kpytrace run [OPTION]... COMMAND [ARGUMENT]...
       kpytrace run [OPTION]... -m MODULE [ARGUMENT]...
       kpytrace run [OPTION]... -c CODE [ARGUMENT]...

Runs a program as python does, and writes a trace of all its calls, or of its allocations. COMMAND is a Python program
on PATH, such as pytest.

"""


def _program(rest: list[str]) -> list[str]:
    """Returns python's arguments that name the program, and the program's own arguments."""
    if not rest:
        raise Usage("no program is given: name a script, or use -m MODULE or -c CODE")
    if rest[0] in ("-m", "-c"):
        if len(rest) == 1:
            raise Usage(f"{rest[0]} needs {'a module' if rest[0] == '-m' else 'code'}")
        return rest
    if rest[0] == "-" or os.path.isfile(rest[0]) or os.path.exists(os.path.join(rest[0], "__main__.py")):
        return rest
    return [_console_script(rest[0]), *rest[1:]]


def _console_script(name: str) -> str:
    """Returns the path of a program such as pytest: beside this Python, or on PATH."""
    import shutil

    folders = os.pathsep.join((os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)))
    found = None if os.sep in name else shutil.which(name, path=folders)
    if not found:
        if os.path.isdir(name):
            raise Usage(f"{name}: the folder has no __main__.py")
        raise Usage(f"{name}: the script does not exist, and no program of this name is on PATH")
    with open(found, "rb") as file:
        head = file.read(200)
    if head[:2] != b"#!" or b"python" not in head:
        raise Usage(f"{found} is not a Python script: name the script or the module (-m MODULE) that it runs, or trace the "
                    f"Python processes that it starts: KPYTRACE=FILE.kpt {name} ...")
    return found


def _interpreter() -> list[str]:
    """Returns this Python with the options that it was started with, such as -X dev. With -E or -I, it adds the
    option that makes _startup read our variables."""
    options = process_info.split(sys.orig_argv)[0]
    if sys.flags.ignore_environment and "kpytrace" not in sys._xoptions:
        options += ["-X", "kpytrace"]
    return [sys.executable, *options]


def _reach(environment: dict[str, str]) -> None:
    """Ensures that the new Python calls _startup. The .pth file of an installation does so. Without an
    installation, Python imports our site/sitecustomize.py at its start, which then loads the user's own."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    import site

    folders = [*site.getsitepackages(), site.getusersitepackages()]
    parent = os.path.dirname(package)
    if os.path.exists(os.path.join(parent, "kpytrace.pth")) and parent in folders:
        return
    if sys.flags.isolated or sys.flags.ignore_environment:
        raise Usage("this kpytrace is not installed, and python -I or -E ignores PYTHONPATH: "
                    "install it with pip")
    environment["KPYTRACE_PATH"] = environment.get("PYTHONPATH", "")
    before = os.path.join(package, "_cli", "site")
    environment["PYTHONPATH"] = os.pathsep.join(
        filter(None, (before, environment.get("PYTHONPATH"))))


def _record_memory(options: dict[str, str], quiet: bool, environment: dict[str, str]) -> None:
    """Moves the options of memory recordings from `options` to the environment."""
    values = {name: options.pop(option) for option, name in _MEMORY_OPTIONS.items() if option in options}
    path = options.pop("memory", None)
    if path is None:
        if values:
            raise Usage(f"{', '.join(f'--{option}' for option in _MEMORY_OPTIONS)} need --memory FILE")
        return
    from .._api.memory import Memory

    try:
        Memory(process_info.expand(path) or path, **values)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise Usage(str(error)) from None
    if "children" in options:
        values["children"] = "1"
    environment[autostart.MEMORY_VARIABLE] = autostart.pack(process_info.absolute(path), values, quiet)


def _record_calls(options: dict[str, str], quiet: bool, environment: dict[str, str]) -> None:
    output = options.pop("output", None) or from_environment("KPYTRACE_OUTPUT") or "kpytrace.kpt"
    output = STDOUT if output == "-" else output
    values = {name.replace("-", "_"): value for name, value in options.items()}
    values.update({name: "0" for name in (*_NEGATED, "gpu") if values.pop(f"no_{name}", None)})
    if values.pop("gpu_calls", None):
        values["gpu"] = "calls"
    if values.pop("torch_shapes", None):
        values["torch"] = "shapes"
    children = values.pop("children", None)
    from .._api.trace import Trace

    try:  # raises errors now, not at the end
        Trace(process_info.expand(output) or output, values)  # type: ignore[arg-type]
        if children:
            from .._processes.children import check

            check(output)
            values["children"] = "1"
    except (TypeError, ValueError) as error:
        raise Usage(str(error)) from None
    environment[autostart.VARIABLE] = autostart.pack(process_info.absolute(output), values, quiet)


def _join(environment: dict[str, str]) -> None:
    """Makes one recording where --output and --memory name one file, and raises errors now, not at the end."""
    from .._api.trace import Trace

    try:
        autostart.join(environment)
        output, options, _ = autostart.unpack(environment.get(autostart.VARIABLE, ""), "") or ("", {}, True)
        if "memory" in options:
            Trace(process_info.expand(output) or output, {k: v for k, v in options.items() if k != "children"})  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise Usage(str(error)) from None


def _print_rank_hint(command: list[str], environment: dict[str, str]) -> None:
    """Informs the user if the name of an output has a placeholder for a rank, but the program has no rank. Then
    only ranks that the program starts are recorded."""
    for variable in (autostart.VARIABLE, autostart.MEMORY_VARIABLE):
        wanted = autostart.unpack(environment.get(variable, ""), "")
        if wanted and not wanted[2] and process_info.expand(wanted[0]) is None and not process_info.is_launcher(command):
            print(f"kpytrace: {os.path.basename(wanted[0])} contains %r, and this program has no rank: only "
                  f"ranks that it starts are recorded", file=sys.stderr)


def main(words: list[str]) -> int:
    options, rest = parse(_ARGUMENTS, words, stops=("-m", "-c"), leave_rest=True)
    if "help" in options:
        print(_USAGE + columns(_ARGUMENTS))
        return 0
    if sys.flags.no_site:
        raise Usage("python -S runs no start-up files, so that nothing can be traced")
    program = _program(rest)
    quiet = bool(options.pop("quiet", ""))
    environment = dict(os.environ)
    _reach(environment)
    _record_memory(options, quiet, environment)
    if not autostart.unpack(environment.get(autostart.MEMORY_VARIABLE, ""), "") or "output" in options:
        _record_calls(options, quiet, environment)
    elif calls_only := options.keys() - {"children"}:
        raise Usage(f"--{next(iter(calls_only))} is about calls, which are recorded beside the memory where "
                    f"--output names a file for them")
    _join(environment)
    command = _interpreter() + program
    _print_rank_hint(command, environment)
    if sys.stdout is not None:  # None if descriptor 1 is closed
        sys.stdout.flush()
    os.execve(command[0], command, environment)
