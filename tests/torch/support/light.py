"""Imported before torch, in quick runs without two things that no program here uses; in a long run (make test-all)
torch has both. The first profiler asks torch's compiler whether it uses CUDA graphs, and so imports all of it: two
seconds before anything is traced, half a minute beside busy threads. Here something answers in its place. And a third
of torch's own import goes into what operators do to tensors without data, as the compiler has them."""

import os
import sys
import types

if not os.environ.get("KPYTRACE_TEST_LONG"):
    inductor, config, meta = (types.ModuleType("torch." + name) for name in (
        "_inductor", "_inductor.config", "_meta_registrations"))
    inductor.config, inductor.__path__ = config, []
    config.triton = types.SimpleNamespace(cudagraphs=False)
    sys.modules.update({module.__name__: module for module in (inductor, config, meta)})
