"""Compiles the shim and checks it, for the other tests."""

import runpy
import sys

sys.argv = ["kpytrace.torch", "check"]
runpy.run_module("kpytrace.torch", run_name="__main__")
