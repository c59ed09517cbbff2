"""Operators and annotations, as torch's shim records them, in a trace of the standalone host, without torch."""

import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "fixtures"))

import abi_host
from kpytrace._api import native

EXCLUDE = ["*/abi_host.py", "*/played_operators.py"]  # for the trace: torch's shim is no Python code


class _Open:
    """An operator or annotation, as a context manager."""

    def __init__(self, tracer, **fields):
        self.tracer, self.fields = tracer, fields

    def __enter__(self):
        self.token = self.tracer.begin_operator(**self.fields)

    def __exit__(self, *_):
        self.tracer.end_operator(self.token)


class Played(abi_host.Tracer):
    """Operators for a running trace."""

    def __init__(self, trace):
        functions, self.handle = native.standalone.tracer(trace._handle)
        self.ops = abi_host.Ops.from_address(functions)
        self._numbers = {}

    def thread(self):
        """Returns a number of the calling thread, as torch has one."""
        return self._numbers.setdefault(threading.get_native_id(), len(self._numbers) + 1)

    def operator(self, name, sequence=None, forward_thread=0):
        number = self.name_operator(name, abi_host.SCOPE_BACKWARD if forward_thread else abi_host.SCOPE_FUNCTION)
        return _Open(self, name=number, sequence_plus_1=0 if sequence is None else sequence + 1,
                     forward_thread=forward_thread, thread=self.thread())

    def annotation(self, text):
        return _Open(self, text=text.encode("utf-8", "backslashreplace"), scope=abi_host.SCOPE_USER)
