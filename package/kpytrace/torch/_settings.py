"""The settings of a session: the arguments of the shim's install() and session_view()."""

from __future__ import annotations

import sys

from . import _kept
from ._types import MODES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


def settings_of(torch: ModuleType, mode: str, threads: bool) -> tuple[Any, ...]:
    """Returns the path of the plugin, the number of MODE, THREADS, the tool ID, the prefixes, and lists of code objects:
    of modules, of optimizers and of calls that torch receives in every mode with calls."""
    from .. import plugin_path

    return (str(plugin_path()), MODES.index(mode), threads, _tool_id(), _prefixes(),
            [torch.nn.Module.__call__.__code__], [torch.optim.Optimizer._optimizer_step_code.__code__],
            _kept.kept_codes())


def _tool_id() -> int:
    """Returns the tool ID for sys.monitoring. On these versions torch's own tracer uses tool 2, which is visible
    to programs, so we use it too. Returns 0 on others."""
    return 2 if (3, 12, 0) <= sys.version_info[:3] < (3, 12, 5) else 0


_prefix_list: Any = None


def _prefixes() -> list[str]:
    """Returns the prefixes by which file names are shortened. They are computed once per process, as in torch."""
    global _prefix_list
    if _prefix_list is None:
        from torch.profiler.python_tracer import _prefix_regex

        _prefix_list = _prefix_regex()
    return _prefix_list
