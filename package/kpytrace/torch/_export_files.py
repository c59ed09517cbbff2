"""Files that an export writes, where the ordinary way (a second file beside the first, then a rename) is not
there, and what is said where our part of one is missing."""

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

# A folder that can't be written to, though the file in it can; a name that is too long with more behind it.
_NO_FILE_BESIDE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG)


def warn(what: str, error: Exception) -> None:
    """Says WHAT is missing, and why."""
    reason = str(error) or type(error).__name__
    warnings.warn(f"kpytrace: {what}, all else is as torch writes it: {reason}", RuntimeWarning,
                  stacklevel=4)


def breaks_json(text: str) -> bool:
    """Whether TEXT can't stand in a JSON string as it is."""
    return any(character in '"\\' or character < " " for character in text)


def is_stream(path: str) -> bool:
    """Whether what is written to PATH can't be read again: a pipe, a device."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, TypeError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def identity(path: str) -> Optional[tuple[int, ...]]:
    """Of the file at PATH and its content: another one, or none, after each write."""
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
    """Has WRITE write TARGET. Where no file can be made beside it, WRITE makes one elsewhere, whose content is
    then copied over that of TARGET, which is not atomic."""
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
    """A disk that is too full is noticed before anything is overwritten."""
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
    """As torch does it: what fails here fails with torch alone."""
    import gzip

    with open(source, "rb") as content, \
            (gzip.open(target, "wb") if compressed else open(target, "wb")) as file:
        shutil.copyfileobj(content, file, 1 << 20)
