"""What makes a flight recorder write itself (start(dump_on=...)): the steps of optimizers, and the other ranks of a
distributed program. The C host decides and writes.

Calls of functions in this file are not recorded: a rank that hangs would otherwise not look idle.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import RLock

from .._api import native
from .._api.summary import print_message
from ._import_hook import AfterImport
from ._rank_channel import RankChannel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

_started: list[Triggers] = []  # replaced, never changed, as optimizers' steps read it
_is_hooked = False
_PATIENCE = 2  # seconds that an exception waits for the channel


def _stepped(optimizer: object, args: object, kwargs: object) -> None:
    for triggers in _started:
        triggers.stepped(id(optimizer))


def _hook() -> None:
    """Registers our hook for all optimizers, once. It stays, since torch may be calling its hooks when a trace stops."""
    global _is_hooked
    register = getattr(sys.modules.get("torch.optim.optimizer"), "register_optimizer_step_post_hook", None)
    if register is not None and not _is_hooked:
        register(_stepped)
        _is_hooked = True


class Triggers:
    """The triggers of one trace, between start() and stop()."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._channel: Optional[RankChannel] = None
        self._told: list[str] = []  # reasons that the other ranks don't know yet
        self._own = 0  # dumps that this process has triggered, and has reported to the other ranks
        self._import = AfterImport(self._begin)
        self._lock = RLock()  # an import on another thread may end while the trace stops

    @staticmethod
    def filters() -> tuple[tuple[str, str, bytes], ...]:
        """Returns the filters that leave out our own functions."""
        from . import _rank_channel

        return tuple(("exclude", "file", os.fsencode(file)) for file in (__file__, _rank_channel.__file__))

    def start(self, handle: Any) -> None:
        self._handle = handle
        self._import.start()

    def stop(self) -> None:
        """May be called again, also after an exception of a signal handler in here."""
        global _started
        self._import.stop()
        with self._lock:
            _started = [triggers for triggers in _started if triggers is not self]
            if self._channel is not None:
                self._channel.close()
            self._channel = None
            self._handle = None

    def forget(self) -> None:
        """In the child of a fork, where the trace has ended and the channel's thread does not exist."""
        self._lock = RLock()  # another thread of the parent may have held it
        self.stop()

    def _begin(self) -> None:
        """torch is imported. Nothing that fails here may fail the import."""
        global _started
        with self._lock:
            if self._handle is None:
                return
            _started = [*_started, self]
            try:
                _hook()
                self._channel = RankChannel({"dump": self._dump}, self._poll, self._sent)
                self._channel.start()
            except Exception as error:
                print_message(f"kpytrace: dump_on does not know of steps or other ranks: {error}")

    def stepped(self, optimizer: int) -> None:
        handle = self._handle
        if handle is not None:
            native.standalone.step(handle, optimizer)

    def tell(self, reason: str) -> None:
        """Makes the other ranks dump. Waits until they can know of it, since the program may be about to end, but not
        for long."""
        channel = self._channel
        if channel is None or not channel.is_connected:
            return
        self._told.append(reason)
        until = time.monotonic() + _PATIENCE
        while self._told and channel.is_connected and time.monotonic() < until:
            time.sleep(0.01)

    def _poll(self) -> Optional[tuple[str, str]]:
        """Returns the command for the other ranks, if there is one."""
        handle = self._handle
        if handle is None:
            return None
        if self._told:
            return "dump", self._told[0]
        own, reason = native.standalone.own_dumps(handle)
        if own == self._own:
            return None
        self._own = own
        return "dump", reason

    def _sent(self, text: str) -> None:
        if self._told and self._told[0] == text:
            self._told.pop(0)

    def _dump(self, rank: int, reason: str) -> None:
        handle = self._handle
        if handle is not None:
            native.standalone.ask_dump(handle, f"rank {rank}: {reason}")
