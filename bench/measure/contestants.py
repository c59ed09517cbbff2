"""The tracers that are timed. Each is a class with start and stop, and is made once; name is its name in
the tables. A contestant that this Python does not have raises Missing when it is made."""
import cProfile
import importlib.machinery
import importlib.util
import pathlib
import sys
import sysconfig

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/fixtures"))
from abi_host import EXCLUDE, FILE_PREFIX, NO_C_CALLS, Host  # noqa: E402, F401


class Missing(Exception):
    pass


def tag():
    """3.13, or 3.13t for a free-threaded build."""
    threaded = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    return "%d.%d%s" % (*sys.version_info[:2], threaded)


class Bare:
    name = "bare"

    def __init__(self, build):
        pass

    def start(self):
        pass

    stop = start


class Limit:
    """The empty hook with a read of the tick counter: the floor."""
    name = "limit"
    ticks = True

    def __init__(self, build):
        path = pathlib.Path(build, "bench", f"kpt_limit-{tag()}.so")
        if not path.exists():
            raise Missing(f"{path} was not built")
        loader = importlib.machinery.ExtensionFileLoader("kpt_limit", str(path))
        spec = importlib.util.spec_from_loader("kpt_limit", loader)
        self.module = importlib.util.module_from_spec(spec)
        loader.exec_module(self.module)

    def start(self):
        self.module.start(self.ticks)

    def stop(self):
        self.module.stop()


class Empty(Limit):
    """The empty hook alone."""
    name = "empty hook"
    ticks = False


class Kpytrace:
    name = "kpytrace"
    exclude = ()
    flags = 0

    def __init__(self, build):
        self.host = Host(pathlib.Path(build, "libkpytrace.so"), name="bench")

    def start(self):
        filters = [(EXCLUDE, FILE_PREFIX, prefix) for prefix in self.exclude]
        self.tracer = self.host.make(filters, flags=self.flags)
        if self.tracer.is_noop:
            raise RuntimeError(f"no tracer: {self.tracer.last_error()}")

    def stop(self):
        self.tracer.stop()
        self.tracer.destroy()


class CProfile:
    name = "cProfile"

    def __init__(self, build):
        pass

    def start(self):
        self.profile = cProfile.Profile()
        self.profile.enable()

    def stop(self):
        self.profile.disable()


class VizTracer:
    name = "viztracer"

    def __init__(self, build):
        try:
            import viztracer
        except ImportError as error:
            raise Missing(str(error)) from None
        self.version = viztracer.__version__
        self.tracer = viztracer.VizTracer(verbose=0)

    def start(self):
        self.tracer.start()

    def stop(self):
        self.tracer.stop()
        self.tracer.clear()


class Torch:
    """torch's own tracer, driven as torch.profiler.profile(with_stack=True) does. Its recording is
    discarded without torch's post-processing, which would take minutes."""
    name = "torch"
    slices = 3  # discarding takes microseconds per call as well

    def __init__(self, build):
        try:
            import torch
        except ImportError as error:
            raise Missing(str(error)) from None
        self.version, self.torch = torch.__version__, torch

    def start(self):
        activities = [self.torch.profiler.ProfilerActivity.CPU]
        self.profile = self.torch.profiler.profile(activities=activities, with_stack=True)
        self.profile.start()

    def stop(self):
        self.torch.autograd._disable_profiler()
        self.profile = None


ALL = (Bare, Empty, Limit, Kpytrace, CProfile, VizTracer, Torch)
