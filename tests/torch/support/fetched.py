"""Environments with other programs that read traces, or that use torch's profiler, fetched once; only in
`make test-all`."""

import fcntl
import os
import pathlib
import subprocess
import sys
import sysconfig
import unittest

# With torch, and so without dependencies, which would bring another one.
LIGHTNING = ("pytorch-lightning==2.5.6", "lightning-utilities==0.15.3", "torchmetrics==1.8.2", "fsspec==2025.10.0",
             "tqdm", "packaging", "pyyaml", "typing_extensions", "numpy")
TRANSFORMERS = ("transformers==4.57.6", "accelerate==1.11.0", "huggingface_hub==0.36.2", "tokenizers==0.22.2",
                "safetensors", "regex", "requests", "urllib3", "idna", "certifi", "charset-normalizer", "numpy",
                "psutil", "pyyaml", "tqdm", "fsspec==2025.10.0", "packaging", "filelock", "typing_extensions",
                "hf-xet")

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
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another test may need it at the same time
        if not os.path.exists(complete):
            _make(folder, python, what, needs, torch)
            with open(complete, "w"):
                pass
    return python


def _make(folder, python, what, needs, torch):
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
