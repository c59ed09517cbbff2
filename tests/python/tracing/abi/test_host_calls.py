"""stop returns when no call to the host is in progress (issue 23, 19), so the host may free what its functions
use. kpt_conform checks thread_attach (R805, R806), from C."""

import ctypes
import pathlib
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from host_case import HostCase, WITHOUT_HOST, abi_host

KEEPS_GIL = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_uint64)


def watched():
    pass


class HostCalls(HostCase):
    def setUp(self):
        super().setUp()
        self.inside, self.go_on = threading.Event(), threading.Event()
        self.finished = False
        self.during = None

    def on_watched(self, watch, instance, call_id):
        """Waits, without the GIL, long enough for a stop that does not wait to return too early."""
        self.inside.set()
        if self.during:
            self.during()
        else:
            self.go_on.wait(0.3)
        self.finished = True
        return 1

    def begin(self):
        """Returns a tracer, and a thread that is in a call to its host."""
        tracer = self.make(self.new_host(watched=self.on_watched), filters=WITHOUT_HOST,
                           watches=[(1, watched)])
        thread = threading.Thread(target=watched)
        thread.start()
        self.addCleanup(thread.join)
        self.assertTrue(self.inside.wait(10))
        return tracer, thread

    def test_stop_waits(self):
        tracer, _ = self.begin()
        tracer.stop()
        self.assertTrue(self.finished)

    def test_stop_with_the_gil_waits(self):
        """The call needs the GIL to continue, so stop releases it."""
        tracer, _ = self.begin()
        stop = KEEPS_GIL(ctypes.cast(tracer.ops.stop, ctypes.c_void_p).value)
        self.assertEqual(stop(tracer.handle), abi_host.OK)
        self.assertTrue(self.finished)

    def test_destroy_waits(self):
        tracer, _ = self.begin()
        tracer.destroy()
        self.assertTrue(self.finished)

    def test_a_call_that_stops_its_tracer(self):
        """stop does not wait for the call that it is called from."""
        stopped = []
        self.during = lambda: stopped.append(tracer.stop())
        tracer = self.make(self.new_host(watched=self.on_watched), filters=WITHOUT_HOST,
                           watches=[(1, watched)])
        watched()
        self.assertEqual(stopped, [None])
        self.assertEqual(tracer.stats()["state"], 2)

    def test_a_call_that_stops_its_tracer_beside_another_call(self):
        """stop waits for the other call, and not for its own."""
        others = []

        def during():
            if threading.current_thread() is threading.main_thread():
                tracer.stop()
                others.append(self.finished)
            else:
                self.go_on.wait(0.3)
        self.during = during
        tracer, thread = self.begin()
        watched()
        self.assertEqual(others, [True])


if __name__ == "__main__":
    unittest.main()
