"""The program, or another process, closes, replaces or removes our descriptors and files."""

import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import Case, limit_file_size, run_python

import kpytrace

# As a daemon does; what it opens then gets the numbers of what it closed.
DAEMON = """
    import os, sys, time
    def leaf(i):
        return i
    def work(n):
        for i in range(n):
            leaf(i)
    work(1000)
    os.closerange(3, 256)
    files = [open(f"own{i}", "w+") for i in range(20)]
    for file in files:
        file.write("mine")
        file.flush()
    work(100_000)
    time.sleep(float(sys.argv[1]))
    work(1000)
    for file in files:
        file.seek(0)
        assert file.read() == "mine", file.read()
    """


def work(n):
    for i in range(n):
        abs(i)


class Descriptors(Case):
    def run_daemon(self, *options, wait=0):
        (self.folder / "daemon.py").write_text(textwrap.dedent(DAEMON), encoding="utf-8")
        reply = run_python("-m", "kpytrace", "run", *options, "daemon.py", str(wait), cwd=self.folder, timeout=120)
        self.assertEqual(reply.returncode, 0, reply.stderr)
        for i in range(20):
            self.assertEqual((self.folder / f"own{i}").read_text(), "mine")
        return reply

    def leaves(self, path):
        return sum(event["name"].endswith(": leaf") for event in self.calls(path))

    def test_a_stream_goes_on(self):
        self.run_daemon("-o", "out.kpt", wait=1.2)  # longer than it takes to flush
        reply = run_python("-m", "kpytrace", "convert", "out.kpt", "out.json", cwd=self.folder)
        self.assertEqual(reply.returncode, 0, reply.stderr)
        self.assertEqual(self.leaves(self.folder / "out.json"), 102_000)

    def test_a_ring_ends(self):
        self.run_daemon("--ring", "60s", "-o", "out.json")
        self.assertEqual(self.leaves(self.folder / "out.json"), 102_000)

    def test_children_are_followed(self):
        self.run_daemon("--children", "-o", "out.json")
        self.assertEqual(self.leaves(self.folder / "out.json"), 102_000)

    # What the program prints goes nowhere, and not into the trace.
    def test_a_stream_is_no_standard_descriptor(self):
        (self.folder / "quiet.py").write_text(textwrap.dedent("""
            import os
            def leaf(i):
                return i
            for i in range(1000):
                leaf(i)
            for fd in range(3):
                try:
                    os.write(fd, b"x" * 5000)
                except OSError:
                    continue
                open("written", "a").write(f"{fd} ")
            """), encoding="utf-8")
        command = f"exec {sys.executable} -m kpytrace run -o out.kpt quiet.py <&- >&- 2>&-"
        reply = subprocess.run(["sh", "-c", command], cwd=self.folder, timeout=120, check=False)
        self.assertEqual(reply.returncode, 0)
        self.assertFalse((self.folder / "written").exists())
        reply = run_python("-m", "kpytrace", "convert", "out.kpt", "out.json", cwd=self.folder)
        self.assertEqual(reply.returncode, 0, reply.stderr)
        self.assertEqual(self.leaves(self.folder / "out.json"), 1000)

    def test_sigterm_ends_it(self):
        program = "import os, signal, time; os.closerange(3, 256); print('x', flush=True); time.sleep(100)"
        with subprocess.Popen([sys.executable, "-m", "kpytrace", "run", "--children", "-o", str(self.path),
                               "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.readline()
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(60), -signal.SIGTERM)


class Names(Case):
    def setUp(self):
        super().setUp()
        self.kpt = self.folder / "trace.kpt"

    def test_a_dump_onto_the_stream_is_refused(self):
        trace = kpytrace.start(self.kpt)
        with self.assertRaisesRegex(ValueError, "the trace is already being written to .*trace.kpt: choose another path"):
            trace.dump(self.kpt)
        work(1000)
        self.assertGreaterEqual(trace.stop().calls, 1000)

    def test_a_stream_that_was_replaced(self):
        trace = kpytrace.start(self.kpt)
        work(1000)
        (self.folder / "other").write_text("other")
        os.replace(self.folder / "other", self.kpt)
        with self.assertRaisesRegex(OSError, "trace.kpt was replaced or removed"):
            trace.stop()
        self.assertEqual(self.kpt.read_text(), "other")

    def test_a_stream_that_was_removed(self):
        trace = kpytrace.start(self.kpt)
        self.kpt.unlink()
        with self.assertRaisesRegex(OSError, "trace.kpt was replaced or removed"):
            trace.stop()

    def test_two_traces_one_after_the_other_in_one_file(self):
        first = kpytrace.start(self.kpt)
        work(1000)
        first.stop()
        kpytrace.start(self.kpt).stop()
        with self.assertRaisesRegex(OSError, "trace.kpt was replaced or removed"):
            first.write(self.path)
        self.assertFalse(pathlib.Path(self.path).exists())

    def test_a_file_records_that_the_disk_was_full(self):
        reply = run_python("-c", textwrap.dedent(f"""
            import kpytrace
            {limit_file_size(600_000)}
            trace = kpytrace.start({str(self.kpt)!r})
            for i in range(300_000):
                (lambda: None)()
            try:
                trace.stop()
            except OSError as error:
                print(error)
            """))
        self.assertIn("events were lost", reply.stdout)
        reply = run_python("-m", "kpytrace", "info", str(self.kpt))
        self.assertEqual(reply.returncode, 0, reply.stderr)
        self.assertIn("incomplete: events are missing", reply.stderr)
        self.assertIn("bytes, incomplete", reply.stdout)


class Hooks(Case):
    def test_a_ring_that_ended_is_not_kept(self):
        before = sys.excepthook
        for _ in range(3):
            kpytrace.start(self.path, ring="1MB").stop()
        self.assertIs(sys.excepthook, before)

    def test_a_hook_above_it_stays(self):
        said = []
        self.addCleanup(setattr, sys, "excepthook", sys.excepthook)
        sys.excepthook = lambda *args: said.append(args)
        trace = kpytrace.start(self.path, ring="1MB")
        watching = sys.excepthook
        sys.excepthook = above = lambda *args: watching(*args)
        trace.stop()
        self.assertIs(sys.excepthook, above)
        sys.excepthook(ValueError, ValueError("x"), None)
        self.assertEqual(len(said), 1)
        self.assertEqual(list(self.folder.glob("*.1.*")), [], "nothing is dumped any more")


if __name__ == "__main__":
    unittest.main()
