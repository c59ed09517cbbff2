"""Environments with other programs that read traces, or that use torch's profiler, fetched once; only in
`make test-all`."""

import os
import pathlib
import subprocess
import sys
import sysconfig
import unittest

ROOT = str(pathlib.Path(__file__).resolve().parents[3])


def python_with(name, what, *needs, torch=False):
    """The Python of an environment that has NEEDS, in build/NAME; skips if it can't be fetched. With TORCH it also
    has this Python's torch, and NEEDS are fetched without dependencies, which would bring another torch."""
    folder = os.path.join(ROOT, "build", name)
    python = os.path.join(folder, "bin", "python")
    complete = os.path.join(folder, ".complete")
    if not os.environ.get("KPYTRACE_TEST_LONG"):
        raise unittest.SkipTest(f"{what} is fetched by `make test-all` only")
    if sys.version_info[:2] != (3, 12):
        raise unittest.SkipTest("the files are the same on all Pythons: 3.12 has this test")
    if os.path.exists(complete):
        return python
    options = ["--no-deps"] if torch else []
    for command in ([sys.executable, "-m", "venv", "--clear", folder],
                    [python, "-m", "pip", "install", "--quiet", *options, *needs]):
        reply = subprocess.run(command, capture_output=True, text=True)
        if reply.returncode != 0:
            raise unittest.SkipTest(f"no {what}: {reply.stderr.strip()[-200:]}")
    if torch:
        version = "python%d.%d" % sys.version_info[:2]
        with open(os.path.join(folder, "lib", version, "site-packages", "torch.pth"), "w") as file:
            file.write(sysconfig.get_path("purelib") + "\n")
    with open(complete, "w"):
        pass
    return python
