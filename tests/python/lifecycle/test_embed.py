"""Runs kpt_embed, the C program that embeds Python: interpreters that end and begin again, and the stress test,
which is the one that runs under ThreadSanitizer.

KPT_EMBED is the path of the program, KPT_PLUGIN that of the plugin. KPT_TSAN=1 if it is built with
ThreadSanitizer.
"""

import collections
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import unittest

from support import FREE_THREADED, rounds

TSAN = os.environ.get("KPT_TSAN") == "1"
LIBRARY = pathlib.Path(sysconfig.get_config_var("LIBDIR") or "",
                       sysconfig.get_config_var("INSTSONAME") or "none")


def accesses(report):
    """Yields the library of each of the two accesses of a report: that of the first frame that is not in an
    interceptor."""
    stacks = re.split(r"\n\n", report)
    for stack in stacks:
        if not re.search(r"^  (Previous )?(atomic )?(read|write) of size", stack, re.I | re.M):
            continue
        frames = re.findall(r"#\d+ .*\((\S+?)\+0x", stack)
        yield next((f for f in frames if not f.startswith("libtsan")), "?")


def judge(text):
    """Returns ThreadSanitizer's reports in which all accesses are ours, and a count of the others.

    libpython is not built with ThreadSanitizer. A free-threaded one synchronises in ways that ThreadSanitizer does
    not detect, and reuses memory in its own allocator. So a race is ours if both accesses are. Races between us
    and libpython, or inside libpython, can't be judged.
    """
    ours, others = [], collections.Counter()
    for report in text.split("=================="):
        if "WARNING: ThreadSanitizer" not in report:
            continue
        sides = list(accesses(report))
        if all("kpytrace" in side or "kpt_embed" in side for side in sides):
            ours.append(report)
        else:
            others[tuple(sorted(sides))] += 1
    return ours, others


@unittest.skipUnless(LIBRARY.exists(), "this Python has no shared libpython to embed")
class EmbedTest(unittest.TestCase):
    def run_scenario(self, name, cycles=None):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "KPYTRACE"))}
        env.update(PYTHONHOME=sys.base_prefix, KPT_CYCLES=str(cycles or 1))
        if TSAN:
            env["TSAN_OPTIONS"] = "halt_on_error=0 exitcode=0 history_size=4"
        command = [os.environ["KPT_EMBED"], os.environ["KPT_PLUGIN"], str(LIBRARY), name]
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", timeout=500)
        if done.returncode == 77:
            self.skipTest(done.stdout)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:])
        ours, others = judge(done.stdout)
        self.assertFalse(ours, f"{len(ours)} races, the first:\n{''.join(ours[:1])}")
        if others:
            print(f"{name}: not ours: {dict(others)}", file=sys.stderr)

    def test_finalize_with_a_running_tracer(self):
        self.run_scenario("finalize")

    @unittest.skipIf(FREE_THREADED or sys.version_info[:2] in ((3, 10), (3, 13)),
                     "such a Python crashes now and then by itself, untraced: its daemon threads "
                     "touch the interpreter that has ended (take_gil)")
    def test_finalize_with_daemon_threads(self):
        self.run_scenario("daemons")

    def test_one_tracer_in_two_interpreters(self):
        self.run_scenario("restart_in_next")

    def test_start_in_an_exit_handler(self):
        self.run_scenario("start_at_exit")

    def test_sub_interpreter(self):
        self.run_scenario("sub_interpreter")

    def test_stress(self):
        self.run_scenario("stress", rounds(20, 300 if TSAN else 1000))

    def test_snapshots(self):
        self.run_scenario("snapshots", rounds(20, 300))

    def test_flush(self):
        self.run_scenario("flush", rounds(200, 3000))

    def test_flush_behind_a_busy_thread(self):
        self.run_scenario("flush_behind", rounds(100, 1000))

    def test_stream(self):
        self.run_scenario("stream", rounds(20, 300))

    def test_tracebacks(self):
        self.run_scenario("tracebacks", rounds(5, 100))


class JudgeTest(unittest.TestCase):
    """Tests judge() on reports in ThreadSanitizer's format."""

    REPORT = """==================
WARNING: ThreadSanitizer: data race (pid=1)
  Write of size 8 at 0x01 by thread T2:
    #0 memset ../tsan.cpp:1 (libtsan.so.2+0x42b6c)
    #1 f a.c:1 ({first}+0x10)
    #2 g b.c:1 (libpython3.12.so+0x10)

  Previous atomic read of size 8 at 0x01 by main thread:
    #0 h c.c:1 ({second}+0x20)

  Thread T2 (tid=1, running) created by main thread at:
    #0 pthread_create ../tsan.cpp:1 (libtsan.so.2+0x632a8)

SUMMARY: ThreadSanitizer: data race
=================="""

    def test_ours_and_theirs(self):
        ours, python = "libkpytrace_cpython3.12.so", "libpython3.12.so"
        for first, second, count in ((ours, ours, 1), (ours, python, 0), (python, python, 0)):
            found, _ = judge(self.REPORT.format(first=first, second=second))
            self.assertEqual(len(found), count, (first, second))


if __name__ == "__main__":
    unittest.main(verbosity=2)
