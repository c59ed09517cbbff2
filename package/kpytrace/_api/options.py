"""The options of a trace: their names, the parsers of their values and their environment variables. Also checks
the path of the output.

OPTIONS is the only list of them; tests compare docs/python.md and the C side (hosts/standalone/module/options.c)
with it.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Literal, Optional, TypedDict, Union

    class Options(TypedDict, total=False):
        """The keyword arguments of start and trace."""

        c_calls: bool
        all_callables: bool
        this_thread: bool
        gc: bool
        gpu: Union[bool, str]
        torch: Union[bool, Literal["shapes"]]
        tasks: bool
        memory: Union[bool, str]
        max_events: int
        max_bytes: Union[int, str]
        on_full: Literal["stop", "ring"]
        ring: str
        ring_ns: Union[int, str]
        ring_bytes: Union[int, str]
        min_duration_ns: Union[int, str]
        max_depth: int
        overhead_permille: int
        tool_id: int
        stream: bool
        flush_ns: Union[int, str]
        compress: bool
        dump_on: Union[str, Iterable[str]]
        dumps_per_hour: int
        include: Union[str, Iterable[str]]
        exclude: Union[str, Iterable[str]]

    Filter = tuple[str, str, bytes]
    Path = Union[str, os.PathLike[str]]

PREFIX = "KPYTRACE_"
_MAX_32, _MAX_64 = 2**32 - 1, 2**64 - 1
GPU_OFF, GPU_CALLS = 2, 3
_SWITCHES = {"1": True, "true": True, "yes": True, "on": True,
             "0": False, "false": False, "no": False, "off": False}
_BYTES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9,
          "kib": 2**10, "mib": 2**20, "gib": 2**30}
_LEAST_HANG = 100 * 10**6
_NS = {"": 1, "ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}


def _switch(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _SWITCHES:
        return _SWITCHES[value.lower()]
    raise ValueError("must be True or False (in the environment 1 or 0)")


def _torch(value: object) -> object:
    """Returns whether torch's operators are recorded, or "shapes"."""
    if isinstance(value, str) and value.lower() == "shapes":
        return "shapes"
    try:
        return _switch(value)
    except (TypeError, ValueError):
        raise ValueError('must be True, False or "shapes" (in the environment 1, 0 or shapes)') from None


def _memory(value: object) -> Optional[int]:
    """Returns None if memory is not recorded, 0 for every block, or one byte in how many is sampled."""
    if value not in (True, False) and (isinstance(value, int) or (isinstance(value, str) and value.lower() not in _SWITCHES)):
        return read_bytes(value)
    try:
        return 0 if _switch(value) else None
    except ValueError:
        raise ValueError('must be True, False or a size such as "512kB" (in the environment 1, 0 or a size)') from None


def _gpu(value: object) -> int:
    """Returns the C host's number of the choice. 0, if there is none, records GPUs if there are any."""
    if isinstance(value, str) and value.lower() == "calls":
        return GPU_CALLS
    try:
        return 1 if _switch(value) else GPU_OFF
    except ValueError:
        raise ValueError('must be True, False or "calls" (in the environment 1, 0 or calls)') from None


def _number(most: int, least: int = 0) -> Callable[[object], int]:
    def read(value: object) -> int:
        if isinstance(value, str) and value.isascii() and value.replace("_", "").isdigit():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError("must be a whole number")
        if not least <= value <= most:
            raise ValueError(f"must be between {least} and {most}")
        return value
    return read


def _quantity(units: Mapping[str, int], example: str) -> Callable[[object], int]:
    """Reads "10s" or "64 MiB" besides plain numbers."""
    plain = _number(_MAX_64)

    def read(value: object) -> int:
        if not isinstance(value, str):
            return plain(value)
        number = value.strip().rstrip("".join({c for unit in units for c in unit + unit.upper()}))
        unit = value.strip()[len(number):].lower()
        try:
            factor, amount = units[unit], float(number)
        except (KeyError, ValueError):
            names = ", ".join(filter(None, units))
            raise ValueError(f"must be a number followed by one of {names}, as in {example!r}") from None
        if number.strip().isdigit():
            return plain(int(number) * factor)  # exact, however large
        return plain(int(amount * factor) if 0 <= amount < 2**64 else -1)
    return read


read_u32, read_u64 = _number(_MAX_32), _number(_MAX_64)
read_bytes = _quantity(_BYTES, "64MB")
read_within = _number(1000)
read_switch = _switch


def read_time(value: object) -> int:
    """Returns nanoseconds for seconds, as a number, or for a time with its unit, "12.5s"."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not 0 <= value < 2**33:
            raise ValueError("must be a number of seconds from 0 on")
        return round(value * 10**9)
    if not isinstance(value, str) or value.strip()[-1:].isdigit():
        raise ValueError("must be a time with its unit, as in '12.5s'")
    return _quantity(_NS, "12.5s")(value)


def _ring(value: object) -> tuple[str, int]:
    """Returns the option that bounds a ring, and its value, for "10s" or "64MB"."""
    if not isinstance(value, str) or not value.strip() or value.strip()[-1].isdigit():
        raise ValueError("must be a time or a size with its unit, as in '10s' or '64MB'")
    try:
        return "ring_ns", _quantity(_NS, "10s")(value)
    except ValueError:
        return "ring_bytes", _quantity(_BYTES, "64MB")(value)


def _word(*words: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        if not isinstance(value, str) or value.lower() not in words:
            raise ValueError(f"must be {' or '.join(map(repr, words))}")
        return value.lower()
    return read


def _dump_on(value: object) -> dict[str, int]:
    """Reads "step>3x", "hang=60s", or both with a comma. Returns the C host's options."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)) or not parts or not all(isinstance(part, str) for part in parts):
        raise ValueError("must be like 'step>3x', 'hang=60s' or 'step>3x,hang=60s'")
    found: dict[str, int] = {}
    for part in (part.strip().lower() for part in parts):
        if part.startswith("hang="):
            found["hang_ns"] = _quantity(_NS, "60s")(part[5:])
            if part[-1:].isdigit() or found["hang_ns"] < _LEAST_HANG:
                raise ValueError("must have a time with its unit for a hang, at least 100ms, as in 'hang=60s'")
        elif part.startswith("step>") and part.endswith("x"):
            try:
                found["step_percent"] = int(float(part[5:-1]) * 100)
            except (ValueError, OverflowError):
                found["step_percent"] = 0
            if not 100 <= found["step_percent"] <= 10**6:
                raise ValueError("must have a factor of at least 1 for a step, as in 'step>3x'")
        else:
            raise ValueError("must be like 'step>3x', 'hang=60s' or 'step>3x,hang=60s'")
    return found


def _pattern(text: object) -> tuple[str, bytes]:
    """Returns the kind of a pattern, "file", "module" or "glob", and the pattern for the plugin."""
    if not isinstance(text, str):
        raise TypeError("must be a string or a list of strings")
    kind, colon, rest = text.partition(":")
    if not colon or kind not in ("file", "module", "glob"):
        kind, rest = "", text
    if not rest or "\0" in rest:
        raise ValueError("has an empty pattern, or one with a NUL in it")
    if not kind:
        kind = ("glob" if any(c in rest for c in "*?[")
                else "file" if "/" in rest or rest[0] in "<~" or rest.endswith(".py")
                else "module")
    if kind == "glob" and "/" not in rest:
        rest = f"*/{rest}"  # matches the file name alone
    elif kind != "module" and rest[0] not in "<*?[":
        # The form in which code objects store the names of their files. A folder keeps its slash: "src/" is not
        # "src2".
        slash = "/" if rest.endswith("/") else ""
        rest = os.path.abspath(os.path.expanduser(rest)).rstrip("/") + slash
    return kind, rest.encode("utf-8", "surrogateescape")


def _patterns(value: object) -> tuple[tuple[str, bytes], ...]:
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    elif not isinstance(value, (list, tuple, set, frozenset)):
        raise TypeError("must be a string or a list of strings")
    return tuple(_pattern(item) for item in value)


class Option:
    """One option: its name, the parser of its value, and its help text."""

    __slots__ = ("name", "read", "text", "variable")

    def __init__(self, name: str, read: Callable[[object], object], text: str, variable: str = "") -> None:
        self.name, self.read, self.text = name, read, text
        self.variable = variable or PREFIX + name.upper()


OPTIONS = {option.name: option for option in (
    Option("c_calls", _switch, "record functions written in C too (default: yes)"),
    Option("all_callables", _switch, "record types, partials and callable instances too"),
    Option("this_thread", _switch, "record only the thread that starts the trace"),
    Option("gc", _switch, "record garbage collections too"),
    Option("gpu", _gpu, "record GPUs too: kernels, copies, the calls of CUDA that start work or wait, and the Python "
           "line of each (default: if there is a GPU)"),
    Option("torch", _torch, "record torch's operators and annotations too, among the calls",
           "KPYTRACE_RUN_TORCH"),  # KPYTRACE_TORCH puts kpytrace into torch's own profiler
    Option("tasks", _switch, "give each task of asyncio a track of its own (default: yes)"),
    Option("memory", _memory, "record the memory that Python allocates too, into the same .kpt file; a size, 512kB, "
           "samples it", "KPYTRACE_RUN_MEMORY"),  # KPYTRACE_MEMORY names a recording's file
    Option("max_events", _number(_MAX_64), "record at most so many events; a call has two"),
    Option("max_bytes", _quantity(_BYTES, "64MB"), "keep at most so many bytes in memory"),
    Option("on_full", _word("stop", "ring"),
           'what to keep if a budget is full: "stop" the beginning, "ring" the end'),
    Option("ring", _ring, 'keep the last so many seconds, "10s", or bytes, "64MB": a flight recorder'),
    Option("dump_on", _dump_on, "write the ring by itself if a step takes so many times the median (step>3x), or if "
           "nothing happens for so long (hang=60s)"),
    Option("dumps_per_hour", _number(60, 1), "how often at most (default: 6)"),
    Option("ring_ns", _quantity(_NS, "10s"), "keep the last so many nanoseconds"),
    Option("ring_bytes", _quantity(_BYTES, "64MB"), "keep the last so many bytes"),
    Option("min_duration_ns", _quantity(_NS, "10us"), "leave shorter calls out of the trace"),
    Option("max_depth", _number(_MAX_32), "do not record deeper calls"),
    Option("overhead_permille", _number(1000),
           "switch off code that would slow the program by more than so many thousandths"),
    Option("tool_id", _number(5), "the sys.monitoring tool ID to use (Python 3.12 and later)"),
    Option("stream", _switch,
           "write a .kpt file while the program runs, so that memory stays bounded (.kpt: always)"),
    Option("flush_ns", _quantity(_NS, "1s"), "how often the events of idle threads are written to a stream"),
    Option("compress", _switch, "pack the events in .kpt files: 3 to 5 bytes a call instead of 16 (default: yes)"),
    Option("include", _patterns, "record only code that one of these patterns matches"),
    Option("exclude", _patterns, "do not record code that one of these patterns matches"),
)}


def _read(option: Option, value: object, source: str) -> object:
    try:
        return option.read(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{source} {error}, not {value!r}") from None


def unknown(name: str) -> TypeError:
    """Returns the error for the name of an unknown option."""
    import difflib

    near = difflib.get_close_matches(name, OPTIONS, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; the options are {', '.join(OPTIONS)}"
    return TypeError(f"unknown option {name!r}{hint}")


SUFFIXES = (".kpt", ".json", ".pftrace", ".html", ".speedscope.json", ".collapsed")
STDOUT = "/dev/stdout"


def check_suffix(path: str, suffixes: Iterable[str], hint: str) -> None:
    """Raises ValueError if PATH ends with a suffix that no format has. A name without a suffix selects Chrome JSON, and
    a pipe or a device may have any name."""
    name = os.path.basename(path)
    plain = name[:-3] if name.endswith(".gz") else name
    if plain.endswith(tuple(suffixes)) or "." not in plain.strip(".") or (
            os.path.exists(path) and not os.path.isfile(path)):
        return
    raise ValueError(f"{name}: no format has the suffix {os.path.splitext(plain)[1]!r}: use {hint}")


def check_output(output: Path, what: str = "trace") -> str:
    """Returns the absolute path, since programs change their working folder. Raises now, rather than at the end,
    if nothing can be written there. "-" is stdout."""
    if output == "-":
        return STDOUT
    path = os.path.abspath(os.fsdecode(output))
    if path.endswith(".kpt.gz"):
        raise ValueError(f"a .kpt file can't be compressed with gzip: leave out .gz in {os.fsdecode(output)!r}: its "
                         f"events are packed anyway")
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise FileNotFoundError(2, f"the folder of the {what} does not exist", folder)
    if os.path.isdir(path):
        raise IsADirectoryError(21, f"the {what} can't be written to a folder: give the name of a file", path)
    if what == "trace":
        check_suffix(path, SUFFIXES, f"{', '.join(SUFFIXES)}, and each but .kpt also with .gz")
    return path


def from_environment(variable: str) -> str:
    """Returns the value of one of our environment variables. Returns "" if it is not set, or if python -E or -I
    ignores it as it ignores Python's own."""
    return "" if sys.flags.ignore_environment else os.environ.get(variable, "")


def resolve(given: Mapping[str, object]) -> dict[str, object]:
    """Returns the values of all options that are set, by keyword or else by environment variable, in the form that
    the C host takes. None means that a keyword is not given."""
    for name in given:
        if name not in OPTIONS:
            raise unknown(name)
    values: dict[str, object] = {}
    for option in OPTIONS.values():
        value, source = given.get(option.name), option.name
        if value is None:
            value, source = from_environment(option.variable) or None, option.variable
        if value is not None:
            values[option.name] = _read(option, value, source)
    if "ring" in values:
        ring: Any = values.pop("ring")
        values[ring[0]] = ring[1]
    values.update(values.pop("dump_on", {}))  # type: ignore[call-overload]
    # The last filter that matches decides, so an exclude has priority over an include.
    filters: list[Filter] = []
    for action in ("include", "exclude"):
        filters += [(action, *pattern) for pattern in values.pop(action, ())]  # type: ignore
    values["filters"] = tuple(filters)
    return values
