"""Helpers of the tests of GPU events. The sample plugin has a simulated GPU, with a few kernels at known
times."""

import collections
import contextlib
import io
import os
import unittest.mock

from support import SAMPLE, Case

import kpytrace
from kpytrace._cli import commands

KERNEL = "void sample_kernel<float>(int, float*)"


class GpuCase(Case):
    def setUp(self):
        super().setUp()
        self.use_plugin(SAMPLE)
        self.kpt = self.folder / "trace.kpt"

    def sample_gpu(self, value):
        patch = unittest.mock.patch.dict(os.environ, {"KPT_SAMPLE_GPU": str(value)})
        patch.start()
        self.addCleanup(patch.stop)

    def record(self, path=None, **options):
        return kpytrace.start(path, **{"gpu": "calls", **options}).stop()

    def command(self, *words):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            self.assertEqual(commands.main(list(map(str, words))), 0, out.getvalue())
        return out.getvalue()

    def events(self, path=None):
        """By category; python_function is left out."""
        found = collections.defaultdict(list)
        for event in self.read_trace(path)["traceEvents"]:
            if event.get("cat") != "python_function":
                found[event.get("cat")].append(event)
        return found
