"""Files that appear when they are whole."""

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
    """The name of a file to write, which then takes the place of `path`; where that fails what was there stays. What is
    no file of its own, as /dev/stdout, is written itself."""
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
    """In UTF-8; names of files may be none, and have ? for what is not."""
    with whole(path) as name, open(name, "wb") as file:
        file.write(text.encode("utf-8", "replace"))
