"""What makes a flight recorder write itself (start(dump_on=...)): the steps of optimizers, and the other ranks of a
distributed program. The C host decides and writes.

Calls of functions in this file are not recorded: a rank that hangs would otherwise not look idle.
"""

from __future__ import annotations

import os
import sys

from .._api import native
from ._import_hook import AfterImport
from ._rank_channel import RankChannel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional


class Triggers:
    """The triggers of one trace, between start() and stop()."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._hook: Any = None
        self._channel: Optional[RankChannel] = None
        self._own = 0  # dumps that this process has triggered, and has reported to the other ranks
        self._import = AfterImport(self._begin)

    @staticmethod
    def filters() -> tuple[tuple[str, str, bytes], ...]:
        """Returns the filters that leave out our own functions."""
        from . import _rank_channel

        return tuple(("exclude", "file", os.fsencode(file)) for file in (__file__, _rank_channel.__file__))

    def start(self, handle: Any) -> None:
        self._handle = handle
        self._import.start()

    def stop(self) -> None:
        """May be called again."""
        self._import.stop()
        hook, self._hook = self._hook, None
        if hook is not None:
            hook.remove()
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()
        self._handle = None

    def _begin(self) -> None:
        if self._handle is None:
            return
        optimizer = sys.modules.get("torch.optim.optimizer")
        register = getattr(optimizer, "register_optimizer_step_post_hook", None)
        if register is not None:
            self._hook = register(self._stepped)
        self._channel = RankChannel({"dump": self._dump}, self._poll)
        self._channel.start()

    def _stepped(self, optimizer: object, args: object, kwargs: object) -> None:
        handle = self._handle
        if handle is not None:
            native.standalone.step(handle)

    def _poll(self) -> Optional[tuple[str, str]]:
        """Returns the command for the other ranks, if there is one."""
        handle = self._handle
        if handle is None:
            return None
        own, reason = native.standalone.own_dumps(handle)
        if own == self._own:
            return None
        self._own = own
        return "dump", reason

    def _dump(self, rank: int, reason: str) -> None:
        handle = self._handle
        if handle is not None:
            native.standalone.ask_dump(handle, f"rank {rank}: {reason}")
