"""Files that appear under their name only when they are complete."""

from __future__ import annotations

import contextlib
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Union

    Path = Union[str, os.PathLike[str]]


@contextlib.contextmanager
def whole(path: Path) -> Iterator[str]:
    """Yields the name of a temporary file to write, which then replaces `path`. On an error the old file stays. If
    `path` is not a regular file, for example /dev/stdout, it is yielded itself."""
    name = os.fspath(path)
    if os.path.islink(name) or (os.path.exists(name) and not os.path.isfile(name)):
        yield name
        return
    beside = f"{name}.{os.getpid()}.tmp"
    try:
        yield beside
        os.replace(beside, name)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)
        raise


def write_text(path: Path, text: str) -> None:
    """Writes `text` in UTF-8. Each character that can't be encoded, as in a file name that is not UTF-8, becomes a
    ?."""
    with whole(path) as name, open(name, "wb") as file:
        file.write(text.encode("utf-8", "replace"))
