"""What the tests of a host's operators share."""

import ctypes
import os

import host_case

NATIVE = ctypes.CDLL(os.environ["KPT_NATIVE"])
NATIVE.native_operators.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint64,
                                    ctypes.c_uint32]
NATIVE.native_far_operators.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64,
                                        ctypes.c_uint32, ctypes.c_uint64]


class OperatorCase(host_case.HostCase):
    def setUp(self):
        super().setUp()
        self.tracer = None

    def start(self, **options):
        options.setdefault("filters", host_case.WITHOUT_HOST)
        self.tracer = self.make(**options)
        return self.tracer

    def stop(self):
        self.tracer.stop()
        return self.tracer.recording()

    def run_native(self, threads=1, rounds=1, depth=2):
        return NATIVE.native_operators(ctypes.addressof(self.tracer.ops), self.tracer.handle, threads, rounds, depth)
