"""A progress bar on the last line of a terminal."""

from __future__ import annotations

import sys
import time

_WIDTH = 30
_EVERY = 0.1


class Bar:
    """Is called with the amount of work done. The bar appears if the work takes long, and close() removes it."""

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total = what, max(total, 1)
        self._next = time.monotonic() + 2 * _EVERY
        self._shown = False

    def __call__(self, done: int) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next, self._shown = now + _EVERY, True
        share = min(done / self._total, 1.0)
        bar = "#" * int(share * _WIDTH)
        sys.stderr.write(f"\r{self._what} [{bar:<{_WIDTH}}] {share:4.0%}")
        sys.stderr.flush()

    def close(self) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def bar(what: str, total: int, quiet: bool) -> Bar | None:
    """Returns a bar, or None if it would not be visible."""
    return Bar(what, total) if not quiet and sys.stderr is not None and sys.stderr.isatty() else None
