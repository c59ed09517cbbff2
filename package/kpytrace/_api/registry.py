"""The recordings of one kind that run in this process, the newest last.

A signal handler may raise between any two lines of the package. So an entry here never decides whether a recording
runs; the recording's `running` does, which calls the C host. Entries change by single operations on a dictionary,
which no handler and no other thread can interrupt.

The registry owns a recording that start() began, in `kept`. It borrows the recording of a `with` block. The block
owns it, so the recording ends with the block, also if a handler raises before __exit__ has run its first line.
"""

from __future__ import annotations

from _weakref import ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


class Registry:
    def __init__(self) -> None:
        self.entries: dict[object, Callable[[], Any]] = {}  # by the recording's key
        # start() stores the recording here as its last step, so a start() that raises earlier leaves nothing
        # running.
        self.kept: dict[object, Any] = {}

    def borrow(self, recording: Any) -> None:
        key, entries = object(), self.entries
        recording.key = key

        def forget(_: object) -> None:
            entries.pop(key, None)

        entries[key] = ref(recording, forget)

    def remove(self, recording: Any) -> None:
        self.kept.pop(recording.key, None)  # first: then the recording ends with its last reference
        self.entries.pop(recording.key, None)

    def clear(self) -> None:
        self.entries.clear()
        self.kept.clear()

    def all(self) -> Iterator[Any]:
        """Yields the recordings that record, and those whose stop() has not returned."""
        for get in tuple(self.entries.values()):
            recording = get()
            if recording is not None:
                yield recording

    def newest(self) -> Any:
        """Returns the last recording that records, or None."""
        newest = None
        for recording in self.all():
            if recording.running:
                newest = recording
        return newest
