"""The file of a native profile: kpytrace.torch._exporter writes it, with the head that Kineto's files have."""

from __future__ import annotations

import json
import os
import tempfile

from .. import _export_files as files
from .._activities import TraceActivity, read_events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    from .result import NativeResult

_FILE_URL = "file://"
_TRIMESTER_S = 7889238  # Kineto's times begin with it


def _value(text: str) -> str:
    """Returns TEXT, a value of metadata, if it is JSON, else a string of it. torch writes a text as a string in which
    only quotes are escaped."""
    try:
        json.loads(text, strict=True, parse_constant=_refuse)
        return text
    except ValueError:
        pass
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1].replace('\\"', '"')
    return json.dumps(text)


def _refuse(constant: str) -> None:
    raise ValueError(constant)  # NaN and Infinity are no JSON


def _members(result: NativeResult, metadata: Optional[dict[str, str]]) -> bytes:
    """Returns the members of the head."""
    members = {"trace_id": json.dumps(result.request.trace_id)} if result.request.trace_id else {}
    members.update({key: _value(value) for key, value in {**result.metadata, **(metadata or {})}.items()})
    members["host_name"] = json.dumps(os.uname().nodename)
    text = "".join(f"{json.dumps(key)}:{value},\n" for key, value in members.items())
    return text.encode("utf-8", "backslashreplace")


def _write(result: NativeResult, target: str, members: bytes, base_ns: int, gzip: bool) -> None:
    from .. import _exporter

    with result.lock:
        _exporter.write_native(result.recording, result.gpu_log(), target, members, base_ns,
                               result.begin_ns, gzip, result.has_kernel_stacks)


def save(result: NativeResult, path: str, metadata: Optional[dict[str, str]]) -> None:
    """Writes RESULT to PATH, compressed if its name ends in .gz. METADATA has precedence over that of the result.
    Raises OSError; the recording is then still there."""
    target = os.fsdecode(path)
    target = target[len(_FILE_URL):] if target.startswith(_FILE_URL) else target
    members = _members(result, metadata)
    base_ns = result.begin_ns // (_TRIMESTER_S * 10**9) * _TRIMESTER_S * 10**9
    files.write_beside_or_over(
        target, lambda to: _write(result, to, members, base_ns, target.endswith(".gz")))


def trace_activities(result: NativeResult) -> list[TraceActivity]:
    """Returns what the file has, with times since 1970."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        _write(result, path, b"", 0, False)
        found: Any = read_events(path)["traceEvents"]
    return [TraceActivity(event) for event in found if event["ph"] == "X" and event["cat"] != "Trace"]
