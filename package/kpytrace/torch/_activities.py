"""The events of a trace as objects like those of torch._C._autograd._ITraceActivity."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OF_GPUS = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver", "cuda_sync")


class TraceActivity:
    """An event, with the methods of torch's class."""

    __slots__ = ("_event", "_number")

    def __init__(self, event: dict[str, Any]) -> None:
        self._event = event
        self._number = event.get("args", {}).pop("External id", 0)

    def name(self) -> str:
        return self._event["name"]

    def type(self) -> str:
        return self._event["cat"]

    def timestamp(self) -> int:
        return self._event["ts"]

    def duration(self) -> int:
        return self._event["dur"]

    def device_id(self) -> int:
        return self._event["pid"]

    def resource_id(self) -> int:
        return self._event["tid"]

    def metadata_json(self) -> str:
        return json.dumps(self._event.get("args", {}))[1:-1]

    def move_by(self, count: int) -> None:
        """Adds COUNT to its index among all activities."""
        self._event["args"]["Ev Idx"] += count

    def correlation_id(self) -> int:
        return self._event["args"].get("correlation", 0) if self.type() in _OF_GPUS else self._number

    def linked_correlation_id(self) -> int:
        return self._number if self.type() in _OF_GPUS else 0

    def flow_id(self) -> int:
        return 0

    flow_type = flow_id

    def flow_start(self) -> bool:
        return False

    def linked_activity(self) -> None:
        return None


def read_events(path: str) -> Any:
    """Returns the JSON at PATH, with times in nanoseconds: they are microseconds with three decimals there."""
    with open(path, encoding="utf-8") as file:
        return json.load(file, parse_float=lambda text: int(text.replace(".", "")))
