"""Compiles the shim and tries it: what the other tests need, and skipped where they are."""

import runpy
import sys

import support  # noqa: F401  skips

sys.argv = ["kpytrace.torch", "check"]
runpy.run_module("kpytrace.torch", run_name="__main__")
