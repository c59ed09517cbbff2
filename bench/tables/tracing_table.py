"""Runs tracing.py under every Python of this machine, with the peers it is compared with, and prints the
results as tables. Peers are in build/bench-venvs and build/torch, fetched once."""
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ORDER = ("limit", "kpytrace", "viztracer", "torch", "cProfile")
# The Pythons that torch is fetched for: half a gigabyte each.
TORCH = ("3.11", "3.12", "3.13")


def pythons():
    """Returns (tag, path) of each Python that has a backend in the build, as scripts/pythons/list finds
    them."""
    lines = subprocess.check_output([ROOT / "scripts/pythons/list"], text=True).splitlines()
    return [line.split(" ", 1) for line in lines]


def pip_commands(tag, python, folder, requirement):
    """Yields the commands that install REQUIREMENT: with the Python's own pip, or with ours for that
    Python."""
    options = ["install", "--quiet", "--only-binary=:all:", "--target", folder, requirement]
    yield [python, "-m", "pip", *options]
    abi = "cp" + tag.replace(".", "")
    yield [sys.executable, "-m", "pip", *options, "--python-version", tag.rstrip("t"),
           "--implementation", "cp", "--abi", abi, "--abi", "abi3", "--abi", "none"]


def peer(tag, python, name):
    """Returns the folder with a package for a Python. If it can't be fetched, prints a message and omits
    it."""
    folder = ROOT / "build/bench-venvs" / tag
    if (folder / name).exists():
        return folder
    for command in pip_commands(tag, python, folder, name):
        result = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                text=True, check=False)
        if result.returncode == 0:
            return folder
    print(f"{tag}: {name} is not installed: {(result.stderr.strip().splitlines() or ['?'])[-1]}", file=sys.stderr)
    return folder


def torch(tag, python):
    """Returns the folders with torch, none or one, as above."""
    if tag not in TORCH:
        return []
    root = ROOT / "build/torch" / tag
    if subprocess.run([ROOT / "scripts/torch_env", python, root], stdout=subprocess.DEVNULL,
                      check=False).returncode:
        print(f"{tag}: torch is not installed", file=sys.stderr)
    return list(root.glob("lib/python3*/site-packages"))


def run_script(contestant, command, environment):
    """Returns the JSON that a benchmark prints as its last line, or None, with a message that begins
    with the contestant's name, if it fails."""
    result = subprocess.run(command, env=dict(environment, PYTHONDONTWRITEBYTECODE="1"), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if result.returncode:
        print(f"{contestant}: {(result.stderr.strip().splitlines() or ['?'])[-1]}", file=sys.stderr)
        return None
    return json.loads(result.stdout.splitlines()[-1])


def run_with_torch(build, python, script, *arguments):
    """The same of a script of bench/measure, by a Python that has torch."""
    environment = dict(os.environ, PYTHONPATH=str(build / "package"), KINETO_LOG_LEVEL="99",
                       KPYTRACE_TORCH_CACHE=str(build / "torch_cache"))
    return run_script(python, [python, "-W", "ignore", ROOT / "bench" / "measure" / script, *arguments], environment)


def measure(build, tag, python):
    """Returns tracing.py's figures for one Python, or None, with a message, if it fails."""
    peers = [peer(tag, python, "viztracer"), *torch(tag, python)]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(map(str, peers)))
    if tag.endswith("t"):
        environment["PYTHON_GIL"] = "0"
    print(f"tracing: {tag} …", file=sys.stderr, flush=True)
    return run_script(tag, [python, ROOT / "bench/measure/tracing.py", build], environment)


def row(*cells):
    print("|", " | ".join(cells), "|")


def heading(*cells):
    row(*cells)
    print("|" + "---|" * len(cells))


def ratio(figures, other):
    return f"{figures['kpytrace'] / figures[other]:.2f}" if other in figures else "–"


def print_costs(results):
    print("\nCost while tracing (ns a call, less the bare program)\n")
    heading("Python", "program", "bare", *ORDER, *(f"kpytrace/{o}" for o in ORDER if o != "kpytrace"))
    for tag, result in results.items():
        for program, r in result["cost_ns"].items():
            row(tag, program, *(f"{r[n]:.0f}" if n in r else "–" for n in ("bare", *ORDER)),
                *(ratio(r, o) for o in ORDER if o != "kpytrace"))


def print_excluded(results):
    columns = {name: None for r in results.values() for name in r["excluded_ns"]["py_call"]}
    print("\nCode that filters exclude, and code after a stop (ns a call, less the bare program)\n")
    heading("Python", "program", *columns)
    for tag, result in results.items():
        for program, r in result["excluded_ns"].items():
            row(tag, program, *(f"{r[n]:.1f}" if n in r else "–" for n in columns))


def print_rest(results):
    print("\nMemory (bytes a call, of a million calls)\n")
    heading("Python", "bytes")
    for tag, result in results.items():
        row(tag, f"{result['memory']['bytes_per_call']:.2f}")
    for tag, result in results.items():
        if "two_threads" in result:
            print(f"\nWork of two threads, over that of one, {tag}\n")
            heading(*result["two_threads"], "kpytrace/limit")
            row(*(f"{v:.2f}" for v in result["two_threads"].values()),
                ratio(result["two_threads"], "limit"))


def tracing(build):
    """Prints the cost of recording, beside the interpreter's own floor and the peers."""
    results = {}
    for tag, python in pythons():
        if not (build / f"libkpytrace_cpython{tag}.so").exists():
            print(f"{tag}: {build} has no backend for it", file=sys.stderr)
            continue
        figures = measure(build, tag, python)
        if figures:
            results[tag] = figures
    if results:
        print_costs(results)
        print_excluded(results)
        print_rest(results)
    return results
