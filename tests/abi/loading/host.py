#!/usr/bin/env python3
"""A host inside a real Python: loads the plugin with ctypes, makes a tracer, and prints the results.

usage: host.py PLUGIN now|ending        (ending: make it while the interpreter is being finalised)
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "fixtures"))
import abi_host  # noqa: E402


def visit(plugin, abi_host=abi_host, print=print):
    """Binds, makes, stops, destroys. What it needs is bound here: globals go in finalisation."""
    host = abi_host.Host(plugin, name="ctypes")
    print("entry", abi_host.OK)
    try:
        tracer = host.make()
    except abi_host.Failed as failed:
        print("make", failed.status)
        print("reason", failed.text)
    else:
        ops, handle = tracer.ops, tracer.handle
        print("make", abi_host.OK)
        print("noop", int(tracer.is_noop))
        print("reason", tracer.last_error())
        print("stop", ops.stop(handle), ops.stop(handle))
        print("stopped", tracer.last_error())
        stats = tracer.stats()
        print("stats", abi_host.OK, stats["state"], stats["events"])
        print("destroy", ops.destroy(handle), ops.destroy(handle))
    print("detach", host.info.detach(host.info.self), flush=True)


class AtTheEnd:
    """Visits when the last module is torn down."""

    def __init__(self, plugin):
        self.plugin = plugin

    def __del__(self, visit=visit, sys=sys, print=print):
        print("finalizing", sys.is_finalizing())
        visit(self.plugin)


if sys.argv[2] == "ending":
    at_the_end = AtTheEnd(sys.argv[1])
else:
    visit(sys.argv[1])
