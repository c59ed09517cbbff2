"""Imported before the first profiler. That asks torch's compiler whether it uses CUDA graphs, and so imports
all of it: two seconds before anything is traced, half a minute beside busy threads. Here something answers in
its place; in a long run (make test-all) the compiler does."""

import os
import sys
import types

if not os.environ.get("KPYTRACE_TEST_LONG"):
    inductor, config = (types.ModuleType("torch._inductor" + name) for name in ("", ".config"))
    inductor.config, inductor.__path__ = config, []
    config.triton = types.SimpleNamespace(cudagraphs=False)
    sys.modules.update({module.__name__: module for module in (inductor, config)})
