"""kpytrace.torch.profile: torch.profiler.profile, recorded by kpytrace whatever install() says."""

from __future__ import annotations

import os

import torch.profiler

from ..._api import native
from . import seam
from .result import NativeResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OWN_FORMATS = (".kpt", ".pftrace", ".pftrace.gz", ".html", ".html.gz", ".speedscope.json", ".speedscope.json.gz",
                ".collapsed", ".collapsed.gz")


class profile(torch.profiler.profile):
    """A torch.profiler.profile that kpytrace records itself, as after install(mode="native"), with the same arguments and
    methods. export_chrome_trace() writes kpytrace's own formats, too, by the suffix of the path: .kpt, .pftrace, .html,
    .speedscope.json, .collapsed. It has no memory profile (export_memory_timeline()) and no event tree.
    """

    def prepare_trace(self) -> None:
        seam.load()
        with seam.Wanted():
            super().prepare_trace()

    def start_trace(self) -> None:
        with seam.Wanted():
            super().start_trace()

    def export_chrome_trace(self, path: Any, *more: Any, **options: Any) -> None:
        name = os.fspath(path)
        result = getattr(self.profiler, "kineto_results", None)
        is_own = name.endswith(_OWN_FORMATS)
        if is_own and not isinstance(result, NativeResult):
            raise RuntimeError(f"{name}: this profile was recorded by Kineto, which has only .json and .json.gz")
        if is_own:
            with result.lock:
                native.standalone.write(result.handle, os.fsencode(name), None)
        elif isinstance(result, NativeResult):
            result.save(name)
        else:
            super().export_chrome_trace(name, *more, **options)
