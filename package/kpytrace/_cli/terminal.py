"""The terminal that output goes to: its width, colours, and paths that fit. Piped output has no escapes, and no line of it
is cut."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

_ENVIRONMENTS = ("/site-packages/", "/dist-packages/")
_DIM, _BOLD, _END = "\x1b[2m", "\x1b[1m", "\x1b[0m"


def is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # it is closed
        return False


def width() -> int:
    """Returns the columns of the terminal on stdout, or 0 if stdout is not a terminal: then nothing is cut."""
    if not is_terminal(sys.stdout):
        return 0
    import shutil

    return max(shutil.get_terminal_size().columns, 20)


def has_colours() -> bool:
    """Whether stdout shows colours (https://no-color.org)."""
    return is_terminal(sys.stdout) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def dim(text: str) -> str:
    return f"{_DIM}{text}{_END}" if text and has_colours() else text


def bold(text: str) -> str:
    return f"{_BOLD}{text}{_END}" if text and has_colours() else text


def short_path(path: str) -> str:
    """Returns a path relative to site-packages, to Python's own library or to the working folder, if it is in one of
    them."""
    for part in _ENVIRONMENTS:
        if part in path:
            return path.rpartition(part)[2]
    head, lib, rest = path.rpartition("/lib/python3.")
    if lib and head and "/" in rest:
        return rest.partition("/")[2]
    try:
        here = os.getcwd().rstrip("/") + "/"
    except OSError:  # the folder is gone
        return path
    return path[len(here):] if here != "/" and path.startswith(here) else path


def cut_left(text: str, room: int) -> str:
    """Returns the end of TEXT if it is longer than ROOM columns."""
    return text if len(text) <= room else "…" + text[len(text) - max(room, 1) + 1:]


def cut_right(text: str, room: int) -> str:
    return text if len(text) <= room else text[:max(room, 1) - 1] + "…"
