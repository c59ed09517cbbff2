"""Runs memory.py under the Pythons that have memray, and prints what recording memory adds."""
import os
import sys

from tracing_table import ROOT, heading, peer, pythons, row, run_script

ROUNDS = os.environ.get("KPYTRACE_BENCH_ROUNDS", "5")
TAGS = ("3.11", "3.12", "3.13")


def measure(build, tag, python):
    folders = build / "package", peer(tag, python, "memray")
    print(f"memory: {tag} …", file=sys.stderr, flush=True)
    return run_script(tag, [python, ROOT / "bench/measure/memory.py", ROUNDS],
                      dict(os.environ, PYTHONPATH=os.pathsep.join(map(str, folders))))


def share(times, other):
    """Returns what exact recording adds, relative to what the other tool adds."""
    bare = times["bare"]
    return f"{(times['exact'] - bare) / (times[other] - bare):.3f}" if other in times else "–"


def memory(build):
    """Prints the cost of recording memory with kpytrace, tracemalloc and memray."""
    results = {tag: measure(build, tag, python) for tag, python in pythons() if tag in TAGS}
    results = {tag: figures for tag, figures in results.items() if figures}
    print("\nRecording memory: time relative to the bare program\n")
    heading("Python", "program", "tracemalloc, 25 frames", "memray", "kpytrace, every block",
            "of tracemalloc's added time (target: 0.15)", "of memray's (target: 0.6)",
            "of memray's added processor time, with packing and writing",
            "kpytrace, 1 byte in 512 kB (target: 1.03)")
    for tag, figures in results.items():
        for program, times in figures.items():
            if program == "export":
                continue
            rates = {who: f"{times[who] / times['bare']:.3g}" if who in times else "–"
                     for who in ("tracemalloc", "memray", "exact")}
            row(tag, program, *rates.values(), share(times, "tracemalloc"), share(times, "memray"),
                share(times["processor"], "memray"), f"{times['sampled']:.3f}")
    print("\nA snapshot (target: a million entries in less than 1 s, less than 40 bytes each)\n")
    heading("Python", "entries", "seconds a million", "bytes an entry")
    for tag, figures in results.items():
        e = figures["export"]
        row(tag, f"{e['entries']:,}", f"{e['seconds_a_million']:.2f}", f"{e['bytes_an_entry']:.1f}")
    return results
