"""Writes the files of an export if the usual way (a second file beside the first, then a rename) is not possible,
and warns if our part of a file is missing."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Optional

# The folder can't be written to, though the file in it can; or the name with a suffix is too long.
_NO_FILE_BESIDE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG)


def warn(what: str, error: Exception) -> None:
    """Warns about WHAT is missing, with the reason."""
    reason = str(error) or type(error).__name__
    warnings.warn(f"kpytrace: {what}, all else is as torch writes it: {reason}", RuntimeWarning,
                  stacklevel=4)


def breaks_json(text: str) -> bool:
    """Whether TEXT needs escapes in a JSON string."""
    return any(character in '"\\' or character < " " for character in text)


def is_stream(path: str) -> bool:
    """Whether PATH is a pipe or a device, whose content can't be read again."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, TypeError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def identity(path: str) -> Optional[tuple[int, ...]]:
    """Returns a value that identifies the file at PATH and its content, and differs after each write. Returns None
    if there is no file."""
    try:
        info = os.stat(path)
    except (OSError, ValueError):
        return None
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def write_beside_or_over(target: str, write: Callable[[str], None]) -> None:
    """Calls WRITE to write TARGET. If no file can be made beside TARGET, WRITE writes a file elsewhere, which is
    then copied over the content of TARGET. The copy is not atomic."""
    try:
        write(target)
        return
    except OSError as error:
        if error.errno not in _NO_FILE_BESIDE:
            raise
    with tempfile.TemporaryDirectory() as folder:
        elsewhere = os.path.join(folder, "trace")
        write(elsewhere)
        _copy_over(elsewhere, target)


def _copy_over(source: str, target: str) -> None:
    """Copies SOURCE over TARGET. A full disk is detected before anything is overwritten."""
    with open(source, "rb") as content, \
            open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666), "wb") as file:
        before, after = (os.fstat(f.fileno()).st_size for f in (file, content))
        try:
            os.posix_fallocate(file.fileno(), 0, max(after, 1))
        except OSError:
            os.ftruncate(file.fileno(), before)
            raise
        shutil.copyfileobj(content, file, 1 << 20)
        file.flush()
        os.ftruncate(file.fileno(), after)


def copy(source: str, target: str, compressed: bool) -> None:
    """Copies in the same way as torch, so that an error here is one that torch alone would have, too."""
    import gzip

    with open(source, "rb") as content, \
            (gzip.open(target, "wb") if compressed else open(target, "wb")) as file:
        shutil.copyfileobj(content, file, 1 << 20)
