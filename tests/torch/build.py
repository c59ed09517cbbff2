"""Compiles the shim and tries it: what the other tests need."""

import runpy
import sys

sys.argv = ["kpytrace.torch", "check"]
runpy.run_module("kpytrace.torch", run_name="__main__")
