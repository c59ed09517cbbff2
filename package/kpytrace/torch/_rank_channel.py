"""A channel for commands between the ranks of a distributed program, through the store of torch.distributed.

A thread of each rank has a connection of its own to the store, since the program's may wait in it for long. A command gets
the next number of a counter and is stored under it; the other ranks look at the counter at intervals. The thread begins
with the process group, and waits for it. Calls of functions in this file are not recorded; only C functions are called
while the channel waits.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from _thread import allocate_lock, start_new_thread
from datetime import timedelta

from .._api.summary import print_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Optional

    Handlers = Mapping[str, Callable[[int, str], None]]
    Poll = Callable[[], Optional[tuple[str, str]]]

_COUNT = "kpytrace/commands"
_INTERVAL = 0.25  # seconds; longer with many ranks, whose store has to answer them all
_RANKS_PER_SECOND = 1000
_PATIENCE = 5  # seconds that a request to the store may take


def _default_group() -> Any:
    """Returns the process group, or None. Reads attributes only."""
    c10d = sys.modules.get("torch.distributed.distributed_c10d")
    return getattr(getattr(c10d, "_world", None), "_default_pg", None)


def _connect(group: Any) -> Any:
    """Returns a client of the group's store with a connection of its own, or None for a store of another kind."""
    distributed: Any = sys.modules["torch.distributed"]
    store = distributed.distributed_c10d._world.pg_map[group][1]
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    kind = type(store).__name__
    if kind == "TCPStore":
        return distributed.TCPStore(store.host, store.port, None, False, timedelta(seconds=_PATIENCE),
                                    wait_for_workers=False)
    if kind == "FileStore":
        return distributed.FileStore(store.path, group.size())
    return None


class RankChannel:
    """Calls handlers[command](rank, text) for the commands of other ranks. poll() returns a command and its text to send
    to them, or None. Both run on the channel's thread."""

    def __init__(self, handlers: Handlers, poll: Poll) -> None:
        self._handlers, self._poll = handlers, poll
        self._is_open = False
        self._done = 0  # commands that this rank has handled
        self._running = allocate_lock()  # held by the thread
        self._pid = 0

    def start(self) -> None:
        self._is_open = True
        self._pid = os.getpid()
        self._running.acquire()
        atexit.register(self._end)
        start_new_thread(self._run, ())

    def close(self) -> None:
        """The thread ends at its next look."""
        self._is_open = False

    def _end(self) -> None:
        """Waits for the thread: Python ends threads that are inside of C++ in a way that C++ can't survive."""
        self.close()
        if self._pid == os.getpid():  # the child of a fork does not have the thread
            self._running.acquire(timeout=2 * _PATIENCE)

    def _run(self) -> None:
        try:
            self._work()
        finally:
            self._running.release()
            atexit.unregister(self._end)

    def _work(self) -> None:
        group = None
        while self._is_open and group is None:
            time.sleep(_INTERVAL)
            group = _default_group()
        if group is None:
            return
        try:
            store = _connect(group)
        except Exception as error:
            print_message(f"kpytrace: this rank has no connection to the others: {type(error).__name__}: {error}")
            return
        if store is not None:
            try:
                self._serve(store, group.rank(), max(_INTERVAL, group.size() / _RANKS_PER_SECOND))
            except RuntimeError:  # the store has ended, with the first rank
                pass

    def _serve(self, store: Any, rank: int, interval: float) -> None:
        self._done = store.add(_COUNT, 0)
        while self._is_open:
            command = self._poll()
            if command is not None:
                self._send(store, rank, *command)
            self._receive(store, rank)
            time.sleep(interval)

    def _send(self, store: Any, rank: int, command: str, text: str) -> None:
        """The counter is advanced first: a rank that is early waits for the text."""
        number = store.add(_COUNT, 1)
        store.set(f"{_COUNT}/{number}", f"{rank} {command} {text}")

    def _receive(self, store: Any, rank: int) -> None:
        count = store.add(_COUNT, 0)
        while self._done < count:
            self._done += 1
            sender, command, text = store.get(f"{_COUNT}/{self._done}").decode("utf-8", "replace").split(" ", 2)
            if int(sender) != rank and command in self._handlers:
                self._handlers[command](int(sender), text)
