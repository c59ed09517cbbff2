"""Run by Python as it starts, in each process of the tests with torch. In quick runs torch is imported without two
things, until something asks for them or for what is built on them; in a long run (make test-all) torch has both, and in
a program with KPYTRACE_TEST_LONG. The first profiler asks torch's compiler whether it uses CUDA graphs, and so imports
all of it: two seconds before anything is traced, half a minute beside busy threads. Here something answers in its place.
And a third of torch's own import goes into what operators do to tensors without data, as the compiler has them."""

import gc
import importlib
import os
import sys
import types
from importlib.machinery import ModuleSpec, PathFinder

WHOLE = ("torch._decomp.", "torch._dynamo.", "torch._inductor.", "torch._prims.", "torch._refs.")
META = "torch._meta_registrations"


class Meta:
    """In the place of META, torch's last module, does the one thing that others need of it."""

    def __init__(self, finder):
        self.finder = finder

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        c = sys.modules["torch"]._C
        if hasattr(c, "_set_generator_metaclass"):
            c._set_generator_metaclass(importlib.import_module("torch._opaque_base").OpaqueBaseMeta)
        self.finder.collect_again()


class Imported:
    """The loader of a module that torch has imported meanwhile."""

    def create_module(self, spec):
        return sys.modules[spec.name]

    def exec_module(self, module):
        pass


class Finder:
    """Finds ours, until a module of WHOLE is imported. Then torch gets its own. No garbage is collected while torch is
    imported, and later not among what it has by then, at exit either: that is a fifth of the time of a small program."""

    has_paused = False

    def collect_again(self):
        if self.has_paused:
            gc.freeze()
            gc.enable()
        self.has_paused = False

    def find_spec(self, name, path=None, target=None):
        if name == "torch" and gc.isenabled():
            self.has_paused = True
            gc.disable()
        if name == META:
            return ModuleSpec(name, Meta(self))
        if not f"{name}.".startswith(WHOLE):
            return None
        sys.meta_path.remove(self)
        self.collect_again()
        for module in (META, *INDUCTOR):
            sys.modules.pop(module, None)
        importlib.import_module(META)
        if name in sys.modules:  # whose own spec importlib would take before that of a finder
            sys.modules[name].__spec__ = ModuleSpec(name, Imported())
            return sys.modules[name].__spec__
        parent = name.rpartition(".")[0]
        return PathFinder.find_spec(name, importlib.import_module(parent).__path__)


INDUCTOR = {name: types.ModuleType(name) for name in ("torch._inductor", "torch._inductor.config")}
if not os.environ.get("KPYTRACE_TEST_LONG"):
    package, config = INDUCTOR.values()
    package.config, package.__path__ = config, []
    config.triton = types.SimpleNamespace(cudagraphs=False)
    sys.modules.update(INDUCTOR)
    sys.meta_path.insert(0, Finder())
