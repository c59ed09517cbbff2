"""Functions with their times, added up over one or several recordings, for `kpytrace top`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from .kpt_file import KptFile

    Key = tuple[str, str, int, str]

_SORTS = {"own": "own_ns", "total": "total_ns", "calls": "calls", "max": "max_ns"}
_ALL = 2**32 - 1
# Files of Python's start-up and of its import system.
_STARTUP = ("<frozen importlib", "<frozen runpy>", "<frozen site>", "<frozen zipimport>")
_STARTUP_ENDS = ("/runpy.py", "/site.py", "/importlib/_bootstrap.py", "/importlib/_bootstrap_external.py")
_OURS = tuple(f"/kpytrace/{part}" for part in ("__init__.py", "_startup.py", "_api/", "_cli/", "_files/", "_processes/",
                                               "torch/"))


def is_startup(file: str) -> bool:
    """Whether FILE is of Python's start-up, of its import system, or of kpytrace: what it does is not the program's own
    work."""
    return file.startswith(_STARTUP) or (
        file.endswith(_STARTUP_ENDS) and "/lib/python3" in file) or any(part in file for part in _OURS)


class Function:
    """A function: its qualified name where Python has one, its file, "" if it is written in C, and its line. Times are in
    ns: own_ns without its callees, total_ns with them."""

    __slots__ = ("name", "file", "line", "thread", "calls", "own_ns", "total_ns", "max_ns")

    def __init__(self, key: Key) -> None:
        self.name, self.file, self.line, self.thread = key
        self.calls = self.own_ns = self.total_ns = self.max_ns = 0

    def as_dict(self) -> dict[str, object]:
        """Returns the keys that docs/python.md promises."""
        found = {"name": self.name, "file": self.file, "line": self.line, "calls": self.calls, "self_ns": self.own_ns,
                 "total_ns": self.total_ns, "max_ns": self.max_ns}
        return {**found, "thread": self.thread} if self.thread else found


class Edge:
    """The calls of one function by another; the caller is None for the outermost call of a thread."""

    __slots__ = ("caller", "callee", "calls", "total_ns", "own_ns")

    def __init__(self, caller: Key | None, callee: Key) -> None:
        self.caller, self.callee = caller, callee
        self.calls = self.total_ns = self.own_ns = 0


def _key(row: Sequence[Any], by_thread: bool) -> Key:
    name, file, line, thread = row[1], row[2], row[3], row[4]
    if not file and not line:
        name = row[0]
    return (name.decode("utf-8", "replace"), file.decode("utf-8", "replace"), line,
            thread.decode("utf-8", "replace") if by_thread else "")


class Table:
    """The functions of recordings. `folded` are the calls that fold() has taken out."""

    def __init__(self, by_thread: bool = False) -> None:
        self.by_thread = by_thread
        self.functions: dict[Key, Function] = {}
        self.folded = Function(("", "", 0, ""))
        self.is_partial = False  # it has only the largest rows
        self._own_ns = 0

    def add_largest(self, file: KptFile, most: int, sort: int) -> None:
        """Adds the MOST largest rows of a recording: those of many threads would not fit in memory."""
        self.is_partial = True
        all_threads = Table()
        all_threads.add(file, False)
        self._own_ns = all_threads.own_ns
        self.add(file, False, most, sort)

    def add(self, file: KptFile, folds: bool, most: int = _ALL, sort: int = 0) -> dict[int, Key]:
        """Adds the functions of a recording, without those of is_startup() if FOLDS is set. Returns their keys by the
        number that they have in it."""
        bar = file.bar("reading")
        rows = file.standalone.profile(file.handle, sort, most, self.by_thread, bar)
        if bar:
            bar.close()
        keys: dict[int, Key] = {}
        for row in rows:
            key = keys[row[10]] = _key(row, self.by_thread)
            found = self.functions.get(key) or self.functions.setdefault(key, Function(key))
            found.calls += row[5]
            found.own_ns += row[6]
            found.total_ns += row[7]
            found.max_ns = max(found.max_ns, row[9])
        if folds:
            self._fold(file, keys)
        return keys

    def _fold(self, file: KptFile, keys: dict[int, Key]) -> None:
        """Takes out the functions of is_startup(), and the calls of functions in C that they make."""
        outside = {number for number, key in keys.items() if is_startup(key[1])}
        if not outside:
            return
        for caller, callee, calls, total_ns, own_ns in _edges(file, keys, outside, ()):
            if caller in outside and not keys[callee][1] and not keys[callee][2]:
                self._take_out(keys[callee], calls, own_ns, total_ns)
        for number in outside:
            found = self.functions.get(keys[number])
            if found:
                self._take_out(keys[number], found.calls, found.own_ns, found.total_ns)

    def _take_out(self, key: Key, calls: int, own_ns: int, total_ns: int) -> None:
        found = self.functions[key]
        self.folded.calls += calls
        self.folded.own_ns += own_ns
        found.calls -= calls
        found.own_ns -= own_ns
        found.total_ns = max(found.total_ns - total_ns, 0)
        if found.calls <= 0:
            del self.functions[key]

    def sorted(self, sort: str) -> list[Function]:
        by = _SORTS[sort]
        return sorted(self.functions.values(), key=lambda f: (-getattr(f, by), f.file, f.line, f.name, f.thread))

    @property
    def own_ns(self) -> int:
        """The time of all functions that are not folded."""
        return self._own_ns or sum(f.own_ns for f in self.functions.values())


def _edges(file: KptFile, keys: dict[int, Key], callers: Iterable[int],
           callees: Iterable[int]) -> list[tuple[int, int, int, int, int]]:
    sides = [bytearray(max(keys, default=0) + 1) for _ in range(2)]
    for side, chosen in zip(sides, (callers, callees)):
        for number in chosen:
            side[number] = 1
    bar = file.bar("callers")
    found: list[tuple[int, int, int, int, int]] = file.standalone.edges(file.handle, *map(bytes, sides), bar)
    if bar:
        bar.close()
    return found


def edges_of(file: KptFile, keys: dict[int, Key], wanted: set[Key], found: dict[tuple[Key | None, Key], Edge]) -> None:
    """Adds the calls from and to the functions WANTED of a recording to FOUND."""
    numbers = [number for number, key in keys.items() if key in wanted]
    for caller, callee, calls, total_ns, own_ns in _edges(file, keys, numbers, numbers):
        pair = (keys.get(caller), keys[callee])
        edge = found.get(pair) or found.setdefault(pair, Edge(*pair))
        edge.calls += calls
        edge.total_ns += total_ns
        edge.own_ns += own_ns


def matching(functions: Iterable[Function], wanted: str) -> list[Function]:
    """Returns the functions that WANTED is: a name, the end of a qualified one, a pattern with *, or what `top` prints."""
    from fnmatch import fnmatchcase

    def is_wanted(f: Function) -> bool:
        place = f"{f.file}({f.line}): {f.name}"
        if any(c in wanted for c in "*?["):
            return fnmatchcase(f.name, wanted) or fnmatchcase(place, wanted)
        return wanted == f.name or f.name.endswith("." + wanted) or place == wanted or (
            place.endswith("/" + wanted) and "): " in wanted)

    return [f for f in functions if is_wanted(f)]
