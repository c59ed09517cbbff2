"""The host of these tests (fixtures/abi_host.py), bound to the package's plugin, and a test case with one.

    class Example(HostCase):
        def test_example(self):
            tracer = self.make(max_depth=5)
            ...
            tracer.stop()
            recording = tracer.recording()
"""

import ctypes
import os
import pathlib
import sys

import kpytrace
import support

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "fixtures"))
import abi_host  # noqa: E402

FLAGS = {1: support.BEGAN_BEFORE, 2: support.ENDED_BY_STOP, 4: support.CLAMPED,
         8: support.RECOVERED, 16: support.WATCHED}

# Filters for a tracer that is called while it runs, since calls of this host would add more events than it reads.
WITHOUT_HOST = [(abi_host.EXCLUDE, abi_host.FILE_PREFIX, file)
                for file in (__file__, abi_host.__file__, support.__file__,
                             os.path.dirname(ctypes.__file__))]


class Delivery(abi_host.Delivery):
    def recording(self, stats=None):
        """Returns the delivery as a support.Recording. The args of a call are its activity."""
        calls = {}
        for a in self.activities:
            if a.phase != abi_host.PHASE_BEGIN:
                flags = [text for bit, text in FLAGS.items() if a.flags & bit]
                calls.setdefault(a.thread, []).append(support.Call(
                    a.id, a.parent_id, self.names[a.name].display.text, a.start_ns, a.end_ns,
                    flags, a))
        threads = {i: (t.os_tid, t.name.text) for i, t in self.threads.items()}
        recording = support.Recording(threads, calls, stats)
        recording.check_nesting()
        return recording


class Tracer(abi_host.Tracer):
    DELIVERY = Delivery

    def recording(self):
        delivery = self.deliver()
        return delivery.recording(self.stats())


class Host(abi_host.Host):
    TRACER = Tracer

    def __init__(self, **options):
        super().__init__(kpytrace.plugin_path(), holds_gil=True, **options)


class HostCase(support.Case):
    """A test case with a host, and tracers that are destroyed at its end."""

    def setUp(self):
        super().setUp()
        self.host = self.new_host()

    def new_host(self, **options):
        host = Host(**options)
        self.addCleanup(host.detach)
        return host

    def make(self, host=None, **options):
        tracer = (host or self.host).make(**options)
        self.addCleanup(self.end, tracer)
        return tracer

    def end(self, tracer):
        try:
            tracer.destroy()
        except abi_host.Failed:
            pass
