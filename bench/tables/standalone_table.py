"""Runs standalone.py and the commands under one Python, beside viztracer and python itself, and prints the
results with the targets. Contestants take turns, and the best of each counts."""
import json
import os
import pathlib
import resource
import subprocess
import time

from tracing_table import ROOT, heading, peer, pythons, row

CALLS = 1_000_000
ROUNDS = 3


class Figures:
    """The rows of a table of figures with targets."""

    def __init__(self):
        self.rows = []

    def add(self, what, value, unit, target, holds):
        self.rows.append({"what": what, "value": value, "unit": unit, "target": target, "holds": holds})

    def print(self):
        heading("", "measured", "target", "")
        for r in self.rows:
            row(r["what"], f"{r['value']:.4g} {r['unit']}", r["target"], "yes" if r["holds"] else "**no**")


def least(old, new):
    """Returns the smaller of each number in two results with the same keys."""
    return new if old is None else {k: least(old[k], v) if isinstance(v, dict) else
                                    min(old[k], v) for k, v in new.items()}


def worker(python, environment, *words):
    output = subprocess.check_output([python, ROOT / "bench/measure/standalone.py", *words], env=environment)
    return json.loads(output)


def race(python, environment, folder, figures):
    """kpytrace and viztracer on the same program, from its start to the file."""
    best, levels = {}, {}
    file = str(folder / "race.json")
    for _ in range(ROUNDS):
        for name in ("bare", "viztracer", "kpytrace"):
            best[name] = least(best.get(name), worker(python, environment, name, str(CALLS), file))
            pathlib.Path(file + ".gz").unlink(missing_ok=True)
            if name != "kpytrace":
                pathlib.Path(file).unlink(missing_ok=True)
        for level in ("9", "6"):
            levels[level] = least(levels.get(level), worker(python, environment, "gzip", file, level))
    for path in folder.glob("race.json*"):
        path.unlink()
    ours, theirs = best["kpytrace"], best["viztracer"]
    cost = {n: (best[n]["run_s"] - best["bare"]["run_s"]) / CALLS * 1e9 for n in ("kpytrace", "viztracer")}
    version = theirs["version"]
    figures.add(f"cost while tracing: kpytrace {cost['kpytrace']:.0f} ns a call, viztracer {version} "
                f"{cost['viztracer']:.0f} ns", cost["viztracer"] / cost["kpytrace"], "×", "", True)
    times = theirs["save_s"] / ours["save_s"]
    figures.add(f"saving {CALLS:,} calls as Chrome JSON: kpytrace {ours['save_s']:.3f} s, viztracer "
                f"{theirs['save_s']:.2f} s", times, "× faster", "≥ 15", times >= 15)
    for level, is_target in (("9", True), ("6", False)):
        times = levels[level]["save_s"] / ours["gzip"]["save_s"]
        figures.add(f".json.gz of them: {ours['gzip']['save_s']:.2f} s, Python's gzip of the file at level "
                    f"{level}{' (its default)' * is_target} {levels[level]['save_s']:.2f} s", times,
                    "× faster", "≥ 5" if is_target else "", times >= 5 or not is_target)
    return {"best": best, "gzip": levels, "cost_ns": cost}


def install(python, folder):
    """The Python of a virtual environment into which this checkout is installed, with .pyc files."""
    own = folder / "bin/python"
    if not own.exists():
        subprocess.run([python, "-m", "venv", folder], check=True)
    subprocess.run([own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                    "--force-reinstall", "--no-deps", ROOT], check=True)
    return own


def seconds(command, environment):
    begin = time.perf_counter()
    subprocess.run(command, env=environment, check=True)
    return time.perf_counter() - begin


def alternate(rounds, contestants, before=None):
    best = {}
    for _ in range(rounds):
        for name, (command, environment) in contestants.items():
            if before:
                before(name)
            spent = seconds(command, environment)
            best[name] = min(best.get(name, spent), spent)
    return best


def start_up(python, folder, figures):
    """Measures what `kpytrace run` adds to an empty script, and what the .pth file adds to every Python."""
    own = install(python, folder / "installed")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("KPYTRACE", "PYTHON"))}
    script, out = folder / "empty.py", folder / "empty.json"
    script.write_text("pass\n", encoding="utf-8")
    run = ["run", "--quiet", "--output", out, script]
    best = alternate(20, {"python": ([own, script], clean),
                          "kpytrace run": ([own.parent / "kpytrace", *run], clean),
                          "python -m kpytrace run": ([own, "-m", "kpytrace", *run], clean)},
                     lambda name: out.unlink(missing_ok=True))
    for name in ("kpytrace run", "python -m kpytrace run"):
        added = (best[name] - best["python"]) * 1e3
        figures.add(f"`{name}` of an empty script, beyond python's {best['python'] * 1e3:.1f} ms", added,
                    "ms", "≤ 30", added <= 30)
    pth = next(folder.glob("installed/lib/python3*/site-packages/kpytrace.pth"))
    aside = pth.with_suffix(".aside")

    def place(name):
        if name == "without" and pth.exists():
            pth.rename(aside)
        elif name == "with" and aside.exists():
            aside.rename(pth)

    plain = ([own, script], clean)
    try:
        pths = alternate(60, {"without": plain, "with": plain}, place)
    finally:
        place("with")
    added = (pths["with"] - pths["without"]) * 1e3
    figures.add("the .pth file, in a Python that does not use it", added, "ms", "< 1", added < 1)
    return {"seconds": best, "pth_seconds": pths}


def processor_seconds(command, environment):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def growth(python, environment, folder, figures, millions):
    """Measures streaming a program to a .kpt file, and the conversion of that file, at several lengths."""
    results = {}
    kpt = folder / "stream.kpt"
    null = {suffix: folder / f"null{suffix}" for suffix in (".json", ".pftrace")}
    for link in null.values():
        link.unlink(missing_ok=True)
        link.symlink_to("/dev/null")
    tools = {"json": ["convert", "-q", kpt, null[".json"]], "pftrace": ["convert", "-q", kpt, null[".pftrace"]],
             "top": ["top", "-q", kpt]}
    command = [python, "-m", "kpytrace"]
    worker(python, environment, "stream", "1", str(kpt))  # no call: a Python that starts
    idle = {name: min(processor_seconds([*command, *words], environment) for _ in range(5))
            for name, words in tools.items()}
    for m in millions:
        streamed = worker(python, environment, "stream", str(m * 1_000_000), str(kpt))
        per_call = 1e9 / streamed["calls"]
        ns = {"run": streamed["run_s"] * per_call}
        for name, words in tools.items():
            ns[name] = (processor_seconds([*command, *words], environment) - idle[name]) * per_call
        results[m] = {**streamed, "ns": ns}
        kpt.unlink()
    print("\nA streamed program, and the conversion of its file (ns of processor time a call)\n")
    heading("calls", "the program, streamed", "convert to .json", "to .pftrace", "top", "bytes a call", "memory")
    for r in results.values():
        row(f"{r['calls']:,}", *(f"{r['ns'][n]:.1f}" for n in ("run", "json", "pftrace", "top")),
            f"{r['bytes'] / r['calls']:.2f}", f"{r['memory_kb'] / 1000:.1f} MB")
    most = max(r["memory_kb"] for r in results.values()) / 1000
    figures.add(f"memory of streaming, {max(millions)} million calls", most, "MB", "< 64", most < 64)
    return results


def standalone(build, millions=(1, 10, 100)):
    """The standalone host: saving beside viztracer, start-up, streaming."""
    wanted = build.joinpath("package/python").read_text(encoding="utf-8").strip()
    tag, python = next(((t, p) for t, p in pythons() if os.path.realpath(p) == os.path.realpath(wanted)),
                       (None, wanted))
    tag = tag or subprocess.check_output(
        [wanted, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], text=True).strip()
    folder = build / "bench/standalone"
    folder.mkdir(exist_ok=True)
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", PYTHONPATH=os.pathsep.join(
        map(str, (build / "package", peer(tag, python, "viztracer")))))
    figures = Figures()
    results = {"python": tag, "race": race(python, environment, folder, figures),
               "start_up": start_up(python, folder, figures),
               "growth": growth(python, environment, folder, figures, millions)}
    print(f"\nThe standalone host, Python {tag}\n")
    figures.print()
    return {**results, "figures": figures.rows}
