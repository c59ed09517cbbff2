"""A family: a program with all processes that it starts (`kpytrace run --children`). Each process streams to its
own .kpt file, in a folder beside the output, so that a killed process leaves the events that it had recorded. The
first process merges the files when it ends. A ring and a memory recording are written to such a file when their
process ends.

Programs that this one starts read the family from the environment; autostart has the hook for forked children."""

from __future__ import annotations

import contextlib
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Optional

    from .._files.kpt_header import File

_SUFFIXES = (".gz", ".json", ".html", ".speedscope", ".pftrace", ".collapsed", ".kpt", ".pickle", ".tables")
_RUNNING = ".running"  # suffix of a marker beside a file that will be written when its process ends
# Processes of multiprocessing itself, which are not recorded. Children of the fork server belong to the program.
_TRACKER, _SERVER = "from multiprocessing.resource_tracker ", "from multiprocessing.forkserver "


def _is_started_as(code: str) -> bool:
    """Whether this process runs python -c with a program that contains `code`."""
    return any(flag == "-c" and code in word for flag, word in zip(sys.orig_argv, sys.orig_argv[1:]))


def is_tracker() -> bool:
    return _is_started_as(_TRACKER)


def is_server() -> bool:
    """Whether this process only forks other processes."""
    return _is_started_as(_SERVER)


def is_named_later() -> bool:
    """Whether multiprocessing will set the name of this process."""
    return "--multiprocessing-fork" in sys.orig_argv


def is_about_to_exec(frame: Optional[FrameType]) -> bool:
    """Whether subprocess has forked this child, which then executes another program at once."""
    return frame is not None and frame.f_code.co_name == "_execute_child"


def _is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        return False


def check(output: str) -> None:
    """Raises ValueError, before the program runs, if the output can't hold several processes."""
    plain = output[:-3] if output.endswith(".gz") else output
    if plain.endswith((".speedscope.json", ".collapsed")) or output.endswith(".html.gz"):
        page = ", from which kpytrace report makes a page" if plain.endswith(".html") else ""
        raise ValueError(f"{os.path.basename(output)} can hold only one process: name an output .json, .pftrace or .html, into "
                         f"which children are merged, or .kpt{page}")


def _is_members(name: str) -> bool:
    """Whether a file in the folder is the recording of a process: "123.kpt", or "123-2.kpt" for the second process
    with that id. The dumps of a ring have another dot."""
    stem, _, rest = name.partition(".")
    return stem.replace("-", "").isdigit() and not rest.partition(".")[0].isdigit()


class Family:
    """The folder of a family, and the values that its members share: the options, and the suffix of their
    files."""

    def __init__(self, folder: str, options: dict[str, str], suffix: str) -> None:
        self.folder, self.options, self.suffix = folder, options, suffix

    @classmethod
    def of_output(cls, output: str, options: dict[str, str], suffix: str) -> Family:
        """Returns a new family. Files of an earlier run in its folder are removed."""
        folder = os.path.abspath(output)
        for end in _SUFFIXES:
            folder = folder[:-len(end)] if folder.endswith(end) else folder
        folder += ".children"
        os.makedirs(folder, exist_ok=True)
        for name in os.listdir(folder):
            if name.endswith((suffix, _RUNNING)) and name.partition(".")[0].replace("-", "").isdigit():
                os.unlink(os.path.join(folder, name))
        return cls(folder, options, suffix)

    def words(self) -> dict[str, str]:
        """Returns the options that members read from the environment."""
        return dict(self.options, family=self.folder, suffix=self.suffix)

    def new_path(self) -> str:
        """Returns a new path for this process. A process id may occur again, after an exec or when it is
        reused."""
        path = os.path.join(self.folder, f"{os.getpid()}{self.suffix}")
        i = 1
        while os.path.exists(path):
            i += 1
            path = os.path.join(self.folder, f"{os.getpid()}-{i}{self.suffix}")
        return path

    def announce(self, path: str) -> None:
        """Makes a marker for a file that will be written when its process ends, so that the first process can
        count it."""
        with contextlib.suppress(OSError):
            open(self._mark(path), "wb").close()

    def retract(self, path: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._mark(path))

    def _mark(self, path: str) -> str:
        return path[:-len(self.suffix)] + _RUNNING

    def _announced(self) -> int:
        """Returns the number of running processes that have no file yet. A killed process leaves its marker."""
        names = set(os.listdir(self.folder))
        stems = [name[:-len(_RUNNING)] for name in names if name.endswith(_RUNNING)]
        numbers = [stem.partition("-")[0] for stem in stems if stem + self.suffix not in names]
        return sum(number.isdigit() and _is_alive(int(number)) for number in numbers)

    def files(self) -> list[str]:
        """Returns the file names of all members."""
        return [name for name in os.listdir(self.folder) if name.endswith(self.suffix) and _is_members(name)]

    def _ended(self) -> tuple[list[File], int]:
        """Returns the files of processes that have ended, normally or by a signal, and the number of running
        processes."""
        from .._files.kpt_header import File

        files, running = [], self._announced()
        for name in self.files():
            try:
                file = File(os.path.join(self.folder, name))
            except (OSError, ValueError):
                continue  # the process was killed before it had written the header
            if file.ended or not _is_alive(file.pid):
                files.append(file)
            else:
                running += 1
        own = os.getpid()
        return sorted(files, key=lambda file: (file.pid != own, file.base_ns, file.pid)), running

    def merge(self, output: str) -> str:
        """Writes all files to `output`. Returns the message for the user."""
        from .._files.merge import merge, summary_line
        from .._files.report_page import merge_page

        files, running = self._ended()
        lost: list[str] = []
        counts = (merge_page if output.endswith(".html") else merge)(files, output, failed=lambda path, error: lost.append(path))
        message = f"kpytrace: {summary_line(counts)}: {output}"
        if lost:
            message += f"\nkpytrace: {len(lost):,} of them can't be read, and are left out: {lost[0]}"
        return message + self.later(output, running)

    def later(self, output: str, running: Optional[int] = None) -> str:
        """Returns the command that the user may run once the other processes have ended. With a .kpt output
        nothing has been merged yet."""
        count = len(self.files()) if running is None else running
        if not count:
            return ""
        what = f"{count:,} still run" if running is not None else f"{count:,} children have files of their own"
        if output.endswith(".html"):
            return f"\nkpytrace: {what}: kpytrace report {self.folder} -o {output}"
        own = f"{output} " if running is None else ""
        return f"\nkpytrace: {what}: kpytrace merge {own}{self.folder}/*.kpt -o all.json"
