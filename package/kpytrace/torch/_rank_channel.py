"""A channel for commands between the ranks of a distributed program, through the TCPStore of torch.distributed.

A thread of each rank has a connection of its own to the store, since the program's may wait in it for long. A command gets
the next number of a counter and is stored under it; the other ranks look for it at intervals. The thread begins when there
is a process group, and follows the program to the next one. It keeps no reference to a group: a program that destroys
one expects it to be gone. Calls of functions in this file are not recorded; only C functions are called while the channel
waits.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from _thread import allocate_lock, get_native_id, start_new_thread
from _weakref import ref
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
_ATTEMPTS = 3  # to connect again
_LOOK_AHEAD = 8  # one look in so many is for the command after the next, since a rank may die before it stores one


def _default_group() -> Any:
    """Returns the process group, or None. Reads attributes only."""
    c10d = sys.modules.get("torch.distributed.distributed_c10d")
    return getattr(getattr(c10d, "_world", None), "_default_pg", None)


def _name_thread() -> None:
    """Gives the thread the name that kpytrace's threads have, so that Python does not warn of forks beside it."""
    try:
        file = os.open(f"/proc/self/task/{get_native_id()}/comm", os.O_WRONLY)
    except OSError:  # there is no /proc
        return
    try:
        os.write(file, b"kpytrace")
    finally:
        os.close(file)


class _Connection:
    """A connection to the store of one process group."""

    def __init__(self, group: Any, store: Any) -> None:
        self._group = ref(group)
        self.store, self.rank = store, group.rank()
        self.interval = max(_INTERVAL, group.size() / _RANKS_PER_SECOND)
        self.done = store.add(_COUNT, 0)  # commands that this rank has seen

    def is_current(self) -> bool:
        """Whether the program still uses the group."""
        group = self._group()
        return group is not None and group is _default_group()

    def send(self, command: str, text: str) -> None:
        number = self.store.add(_COUNT, 1)
        self.store.set(f"{_COUNT}/{number}", f"{self.rank} {command} {text}")

    def receive(self, ahead: bool) -> Optional[tuple[int, str, str]]:
        """Returns the next command: the rank that has sent it, its name and its text. Returns None if there is none."""
        for number in (self.done + 1, self.done + 2) if ahead else (self.done + 1,):
            key = f"{_COUNT}/{number}"
            if self.store.check([key]):
                self.done = number
                sender, command, text = self.store.get(key).decode("utf-8", "replace").split(" ", 2)
                return int(sender), command, text
        return None


def _connect(group: Any) -> Optional[_Connection]:
    """Returns a connection of our own, or None if the group's store is of another kind."""
    distributed: Any = sys.modules["torch.distributed"]
    store = distributed.distributed_c10d._world.pg_map[group][1]
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    if type(store).__name__ != "TCPStore":
        return None
    return _Connection(group, distributed.TCPStore(store.host, store.port, None, False, timedelta(seconds=_PATIENCE),
                                                   wait_for_workers=False))


class RankChannel:
    """Calls handlers[command](rank, text) for the commands of other ranks. poll() returns a command and its text to send
    to them, or None; sent(text) is called when they can receive it. All run on the channel's thread."""

    def __init__(self, handlers: Handlers, poll: Poll, sent: Callable[[str], None]) -> None:
        self._handlers, self._poll, self._sent = handlers, poll, sent
        self.is_connected = False
        self._is_open = False
        self._running = allocate_lock()  # held by the thread
        self._pid = os.getpid()

    def start(self) -> None:
        self._is_open = True
        self._running.acquire()
        atexit.register(self._end)
        try:
            start_new_thread(self._run, ())
        except BaseException:
            self._ended()
            raise

    def close(self) -> None:
        """The thread ends at its next look."""
        self._is_open = False

    def _end(self) -> None:
        """Waits for the thread: Python ends threads that are inside of C++ in a way that C++ can't survive."""
        self.close()
        if self._pid == os.getpid():  # the child of a fork does not have the thread
            self._running.acquire(timeout=2 * _PATIENCE)

    def _ended(self) -> None:
        self._running.release()
        atexit.unregister(self._end)

    def _run(self) -> None:
        try:
            _name_thread()
            self._work()
        finally:
            self._ended()

    def _work(self) -> None:
        failures, other = 0, lambda: None  # a group whose store can't be used
        while self._is_open:
            group = _default_group()
            if group is None or group is other():
                del group
                time.sleep(_INTERVAL)
                continue
            try:
                connection = _connect(group)
                other = ref(group)
                del group
                if connection is not None:
                    self.is_connected = True
                    try:
                        self._serve(connection)
                    finally:
                        self.is_connected = False
                    failures, other = 0, lambda: None
            except Exception as error:  # the first rank has ended, and the store with it, or does not answer
                group, other = None, lambda: None
                failures += 1
                if failures > _ATTEMPTS:
                    print_message(f"kpytrace: this rank has no connection to the others any more: {error}")
                    return
                self._sleep(_PATIENCE * failures)

    def _sleep(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while self._is_open and time.monotonic() < until:
            time.sleep(_INTERVAL)

    def _serve(self, connection: _Connection) -> None:
        looks = 0
        while self._is_open and connection.is_current():
            looks += 1
            command = self._poll()
            if command is not None:
                connection.send(*command)
                self._sent(command[1])
            received = connection.receive(looks % _LOOK_AHEAD == 0)
            if received is None:
                time.sleep(connection.interval)
                continue
            sender, name, text = received
            if sender != connection.rank and name in self._handlers:
                self._handlers[name](sender, text)
