"""The calls that torch receives in mode "full" though they enclose no operator, because torch's own analyses
search for their names. This is the only list of them. The analyses are torch/profiler/_pattern_matcher.py and
_memory_profiler.py. They also read operators, modules and optimizers, which are always kept.
"""

from __future__ import annotations

import inspect
import sys
from functools import reduce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

# Modules of torch that `import torch` imports, and functions in them. A release need not have all of them.
CALLS = (
    # SynchronizedDataLoaderPattern: a loader without workers does not make this call.
    ("torch.utils.data.dataloader", "DataLoader.check_worker_number_rationality"),
    # OptimizerSingleTensorPattern: needed also for an optimizer whose parameters have no gradients.
    ("torch.optim.adam", "_single_tensor_adam"),
    ("torch.optim.adamw", "_single_tensor_adamw"),
    ("torch.optim.sgd", "_single_tensor_sgd"),
)


def _code_of(module: str, function: str) -> Any:
    found = reduce(lambda value, name: getattr(value, name, None), function.split("."),
                   sys.modules.get(module))
    return getattr(inspect.unwrap(found), "__code__", None) if callable(found) else None


def kept_codes() -> list[CodeType]:
    """Returns the code objects of CALLS in the imported torch."""
    return [code for code in (_code_of(*call) for call in CALLS) if code is not None]
