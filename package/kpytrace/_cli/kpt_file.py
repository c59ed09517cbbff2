"""An open recording, for the commands that read one."""

from __future__ import annotations

import sys

from . import inputs, progress
from .formatting import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SORTS = {"own": 0, "total": 1, "calls": 2, "max": 3}  # the order of the rows of profile()
_STATES = {"cut off": "its program was killed, or still runs; the {what} up to there are read",
           "damaged": "the {what} up to there are read",
           "incomplete": "events are missing, because there was no room for them when they were recorded"}


def print_state(path: str, state: str, what: str = "calls") -> None:
    """Explains the state of a file that is not whole."""
    if state != "whole":
        print(f"kpytrace: {shown(path)} is {state}: {_STATES[state].format(what=what)}", file=sys.stderr)


def print_opened(path: str, state: str, skipped: tuple[int, int]) -> None:
    """Explains the state of a file that is not whole, and names the records that this kpytrace does not know."""
    print_state(path, state)
    records, kind = skipped
    if records:
        print(f"kpytrace: {shown(path)} has {records:,} record{'s' * (records != 1)} that this kpytrace does not know "
              f"(kind {kind}): skipped; a newer kpytrace reads them", file=sys.stderr)


class KptFile:
    """An open .kpt file, or another trace that inputs.py makes one of. `state` is "whole" or a key of _STATES, and `info` is the description of the process."""

    def __init__(self, path: str, options: dict[str, str]) -> None:
        from .._api import native

        self.plugin = plugin = native.load()
        self.standalone: Any = native.standalone
        self.path, self.quiet = path, "quiet" in options
        with inputs.as_kpt(path, self.quiet) as name:  # once it is open, it can be removed
            self.handle, self.state, info = self.standalone.open(plugin, name, "recover" in options)
        lines = info.decode("utf-8", "replace").split("\n")  # a value may have other separators of splitlines()
        self.info = dict(line.split("=", 1) for line in lines if "=" in line)
        self.stats: dict[str, int] = self.standalone.stats(self.handle)
        if not self.quiet:
            print_opened(path, self.state, self.standalone.skipped(self.handle))

    @property
    def is_imported(self) -> bool:
        """Whether the recording was made of a trace in another format."""
        return self.info.get("recording") == inputs.IMPORTED

    def missing(self) -> list[str]:
        """Returns what the recording lacks, and how to record it."""
        found = []
        if self.stats["threads_unreached"]:
            found.append(f"{self.stats['threads_unreached']:,} threads, which kpytrace could not reach")
        if self.info.get("this_thread"):
            found.append("other threads: record without this_thread (--this-thread) to get them")
        if self.info.get("children"):
            found.append("processes that the program started: record with `kpytrace run --children` to get those in Python")
        return found

    def print_missing(self) -> None:
        for text in self.missing():
            print(f"kpytrace: {shown(self.path)} does not have {text}", file=sys.stderr)

    def bar(self, what: str) -> progress.Bar | None:
        """Returns a progress bar for reading all calls of the file, or None if it would not be visible."""
        return progress.bar(what, self.stats["events"] // 2, self.quiet)

    def write(self, path: str, what: str = "converting") -> int:
        """Writes the trace in the format of the path's suffix. Returns the number of its calls."""
        bar = self.bar(what)
        counts = self.standalone.write(self.handle, path, bar)
        if bar:
            bar.close()
        return int(counts["calls"])
