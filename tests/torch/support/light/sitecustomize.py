"""Run by Python as it starts, in each process of the tests with torch. In quick runs torch is imported without two things
that few programs here use; in a long run (make test-all) torch has both, and in a program with KPYTRACE_TEST_LONG. The
first profiler asks torch's compiler whether it uses CUDA graphs, and so imports all of it: two seconds before anything
is traced, half a minute beside busy threads. Here something answers in its place. And a third of torch's own import goes
into what operators do to tensors without data, as the compiler has them."""

import os
import sys
import types

if not os.environ.get("KPYTRACE_TEST_LONG"):
    inductor, config, meta = (types.ModuleType("torch." + name) for name in (
        "_inductor", "_inductor.config", "_meta_registrations"))
    inductor.config = config
    inductor.__path__ = [  # for its parts that others import
        os.path.join(sys.prefix, "lib", "python%d.%d" % sys.version_info[:2], "site-packages", "torch", "_inductor")]
    config.triton = types.SimpleNamespace(cudagraphs=False)
    sys.modules.update({module.__name__: module for module in (inductor, config, meta)})
