"""The .kpt format: streams, their content after the program is killed, damaged files, conversion, and the
commands that read it."""

import collections
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import Case, run_python
from work import WORK, work

import kpytrace
from kpytrace import _standalone
from kpytrace._api import native


def kpytrace_command(*words, **options):
    return run_python("-m", "kpytrace", *map(str, words), **options)


class Files(Case):
    def setUp(self):
        super().setUp()
        self.kpt = self.folder / "trace.kpt"

    def convert(self, source, target=None, *options):
        target = target or self.path
        reply = kpytrace_command("convert", *options, source, target)
        self.assertEqual(reply.returncode, 0, reply.stderr)
        return reply

    def spans(self, path):
        """Returns calls as (thread, name, start, duration), which every format has."""
        return sorted((e["tid"], e["name"], e["ts"], e["dur"]) for e in self.calls(path))


class Stream(Files):
    def test_a_stream_equals_its_recording(self):
        """A streamed recording equals the file written at the end, and a copy that was loaded and written again."""
        with kpytrace.trace(gc=True) as t:
            work(3000)
            threads = [threading.Thread(target=work, args=(n,), name=f"t{n}") for n in (10, 20)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        t.write(self.path)
        t.write(self.kpt)
        self.convert(self.kpt, self.folder / "copy.kpt")
        self.convert(self.folder / "copy.kpt", self.folder / "copy.json")
        one, two = self.read_trace(), self.read_trace(self.folder / "copy.json")
        for trace in one, two:
            del trace["traceName"]
        self.assertEqual(one, two)

    def test_a_stream_holds_all(self):
        with kpytrace.trace(self.kpt, flush_ns="10ms", compress=False) as t:
            work(30000)
            thread = threading.Thread(target=work, args=(20000,))
            thread.start()
            time.sleep(0.05)
            thread.join()
        self.convert(self.kpt)
        names = collections.Counter(name.split(": ")[-1] for name in self.names())
        self.assertEqual((names["leaf"], names["work"]), (50000, 2))
        self.assertEqual(t.summary.calls, len(self.calls()))
        self.assertEqual(t.summary.dropped, 0)
        self.assertGreater(self.kpt.stat().st_size, 16 * 50000)

    @unittest.skipIf("ASAN_OPTIONS" in os.environ, "AddressSanitizer keeps what was freed")
    def test_a_stream_needs_little_memory_to_its_end(self):
        """The memory is smaller than the file, also while calls are counted, and during conversion."""
        result = run_python("-c", WORK + textwrap.dedent(f"""
            import kpytrace
            def highest():
                lines = open("/proc/self/status").read().splitlines()
                return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
            before = highest()
            t = kpytrace.start({str(self.kpt)!r}, compress=False)
            work(4_000_000)
            calls = t.stop().calls
            t.write("/dev/null")
            print(calls > 4_000_000, highest() - before)
            """))
        self.assertEqual(result.returncode, 0, result.stderr)
        counted, kilobytes = result.stdout.split()
        self.assertEqual(counted, "True")
        self.assertGreater(self.kpt.stat().st_size, 64_000_000)
        self.assertLess(int(kilobytes), 48_000)

    def test_streaming_to_another_format(self):
        with kpytrace.trace(self.path, stream=True) as t:
            work(1000)
            self.assertTrue(pathlib.Path(f"{self.path}.kpt").exists())
        self.assertFalse(pathlib.Path(f"{self.path}.kpt").exists())
        self.assertEqual(sum(name.endswith(": leaf") for name in self.names()), 1000)
        self.assertEqual(t.summary.calls, len(self.calls()))

    def test_it_can_be_read_while_it_is_written(self):
        with kpytrace.trace(self.kpt, flush_ns="10ms"):
            work(1000)
            for _ in range(100):  # another thread flushes
                time.sleep(0.02)
                self.convert(self.kpt)
                if sum(name.endswith(": leaf") for name in self.names()) == 1000:
                    break
            else:
                self.fail("an idle thread's calls did not come")

    def test_dumps_of_a_stream(self):
        with kpytrace.trace(self.kpt):
            work(100)
            self.assertEqual(kpytrace.dump(self.path), str(self.path))
            self.assertEqual(sum(name.endswith(": leaf") for name in self.names()), 100)
            self.assertEqual(kpytrace.dump(), str(self.folder / "trace.1.kpt"))

    def test_a_pipe(self):
        reader, writer = os.pipe()
        chunks = []

        def read():
            while chunk := os.read(reader, 65536):
                chunks.append(chunk)

        thread = threading.Thread(target=read)
        thread.start()
        with kpytrace.trace(f"/dev/fd/{writer}", stream=None) as t:
            work(10)
        os.close(writer)
        thread.join()
        os.close(reader)
        self.assertIn(b"traceEvents", b"".join(chunks))
        self.assertGreater(t.summary.calls, 10)

    def test_a_fork_leaves_the_stream_alone(self):
        with kpytrace.trace(self.kpt, flush_ns="5ms"):
            work(100)
            pid = os.fork()
            if not pid:
                work(100)
                os._exit(0 if kpytrace._api.trace._active is None else 1)
            self.assertEqual(os.waitpid(pid, 0)[1], 0)
            work(100)
        self.convert(self.kpt)
        self.assertEqual(sum(name.endswith(": leaf") for name in self.names()), 200)


class Death(Files):
    def test_long_ago_is_there(self):
        """The file has calls from long before a kill, also those of a thread that sleeps since then."""
        program = WORK + textwrap.dedent("""
            import kpytrace, time
            kpytrace.start(sys.argv[1], flush_ns="10ms")
            work(777)
            time.sleep(1)
            print("now", flush=True)
            time.sleep(60)
            """)
        child = subprocess.Popen([sys.executable, "-c", program, self.kpt], stdout=subprocess.PIPE)
        child.stdout.readline()
        child.kill()
        child.communicate()
        self.convert(self.kpt)
        self.assertEqual(sum(name.endswith(": leaf") for name in self.names()), 777)

    def test_the_disk_is_full(self):
        """A limit on the file's size simulates a full disk: written calls are complete, and the loss is reported."""
        def work_under_a_limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            before = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, before[1]))
            trace = kpytrace.start(self.kpt)
            work(50_000)
            try:
                with self.assertRaisesRegex(OSError, r"\d{4,} events were lost"):
                    trace.stop()
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, before)
            self.assertFalse(trace.running)

        work_under_a_limit()
        reply = kpytrace_command("info", self.kpt)
        self.assertEqual(reply.returncode, 0, reply.stderr)
        self.convert(self.kpt)
        leaves = sum(name.endswith(": leaf") for name in self.names())
        self.assertGreater(leaves, 1000)
        self.assertLess(leaves, 50_000)

    def test_paths_that_can_not_be_written(self):
        for path, error in ((self.folder / "none" / "x.kpt", FileNotFoundError),
                            ("/proc/x.kpt", OSError)):
            with self.assertRaises(error):
                kpytrace.start(path)
            self.assertIsNone(kpytrace._api.trace._active)

    def test_a_full_device(self):
        """A stream on a full device can't begin."""
        os.symlink("/dev/full", self.kpt)
        with self.assertRaisesRegex(OSError, "No space"):
            kpytrace.start(self.kpt)


class Damage(Files):
    def setUp(self):
        super().setUp()
        with kpytrace.trace(self.kpt):
            work(20000)
        self.bytes = self.kpt.read_bytes()

    def info(self, data, *options):
        self.kpt.write_bytes(data)
        return kpytrace_command("info", *options, self.kpt)

    def test_no_kpt_file(self):
        for data, text in ((b"", "too short"), (b"x" * 200, "it is not a .kpt file"), (self.bytes[:63], "too short")):
            reply = self.info(data)
            self.assertEqual((reply.returncode, reply.stdout), (1, ""))
            self.assertIn(text, reply.stderr)
        other = bytearray(self.bytes)
        other[8] = 99
        self.assertIn("newer version", self.info(other).stderr)
        other[8] = 0
        self.assertIn("unknown version", self.info(other).stderr)
        other = bytearray(self.bytes)
        other[16] ^= 1
        self.assertIn("its header is damaged", self.info(other).stderr)
        for text, status, error in (("{}", 1, "no trace in Chrome's format"), ("text", 2, "is not a .kpt file")):
            self.path.write_text(text)
            reply = kpytrace_command("convert", self.path, self.folder / "x.pftrace")
            self.assertEqual(reply.returncode, status)
            self.assertIn(error, reply.stderr)
        reply = kpytrace_command("top", self.folder / "none.kpt")
        self.assertEqual(reply.returncode, 1)
        self.assertIn("No such file", reply.stderr)

    def test_cut_off_anywhere(self):
        rng = random.Random(1)
        for size in [64, 65, 88, len(self.bytes) - 1, *(rng.randrange(64, len(self.bytes))
                                                       for _ in range(20))]:
            reply = self.info(self.bytes[:size])
            self.assertEqual(reply.returncode, 0, f"{size}: {reply.stderr}")
            self.assertIn("cut off", reply.stderr)

    def test_damaged_anywhere(self):
        rng = random.Random(2)
        for _ in range(20):
            at = rng.randrange(100, len(self.bytes) - 24)
            data = bytearray(self.bytes)
            data[at] ^= 1 << rng.randrange(8)
            reply = self.info(data)
            if reply.returncode == 0:  # padding, or a size that now reaches behind the end
                continue
            self.assertEqual((reply.returncode, reply.stdout), (1, ""))
            self.assertRegex(reply.stderr, r"damaged at byte \d+ of \d+|the recording is damaged")
            if "at byte" in reply.stderr:
                reply = self.info(data, "--recover")
                self.assertEqual(reply.returncode, 0, reply.stderr)


class Commands(Files):
    def setUp(self):
        super().setUp()
        with kpytrace.trace(self.kpt):
            work(500)
            thread = threading.Thread(target=work, args=(300,), name="a worker")
            thread.start()
            thread.join()

    def test_top(self):
        reply = kpytrace_command("top", "--sort", "calls", "-n", "1", self.kpt)
        self.assertEqual((reply.returncode, reply.stderr), (0, ""))
        head, row, *rest = reply.stdout.splitlines()
        self.assertEqual(head.split(), ["calls", "own", "share", "total", "per", "call", "longest", "function"])
        self.assertTrue(rest and all(line.startswith(" ") for line in rest), rest)  # other rows, and what is folded
        self.assertEqual(row.split()[0], "800")
        self.assertTrue(row.endswith(": leaf"))
        rows = kpytrace_command("top", "--threads", "-n", "0", self.kpt).stdout.splitlines()[1:]
        self.assertEqual([row.split()[0] for row in rows if row.endswith(": leaf  [a worker]")], ["300"])

    def test_top_agrees_with_the_trace(self):
        self.convert(self.kpt)
        total, own = collections.Counter(), collections.Counter()
        by_id = {e["args"]["Python id"]: e for e in self.calls()}
        for e in by_id.values():
            ns = round(e["dur"] * 1000)
            own[e["name"]] += ns
            parent = by_id.get(e["args"]["Python parent id"])
            if parent:
                own[parent["name"]] -= ns
            while parent and parent["name"] != e["name"]:
                parent = by_id.get(parent["args"]["Python parent id"])
            if not parent:
                total[e["name"]] += ns
        handle, state, _ = _standalone.open(native.load(), self.kpt, False)
        self.assertEqual(state, "whole")
        rows = _standalone.profile(handle, 0, 2**32 - 1, False, None)
        self.assertEqual({row[0].decode(): row[6] for row in rows}, dict(own))
        self.assertEqual({row[0].decode(): row[7] for row in rows}, dict(total))
        self.assertEqual([row[6] for row in rows], sorted((row[6] for row in rows), reverse=True))

    def test_info(self):
        reply = kpytrace_command("info", self.kpt)
        self.assertEqual((reply.returncode, reply.stderr), (0, ""))
        for text in ("whole", "command:", "python:", "calls:", "dropped:      0", "a worker",
                     "tracing cost: about"):
            self.assertIn(text, reply.stdout)

    def test_every_format(self):
        for suffix in (".json", ".json.gz", ".pftrace", ".speedscope.json", ".collapsed", ".kpt"):
            target = self.folder / f"out{suffix}"
            reply = self.convert(self.kpt, target)
            self.assertIn("calls in", reply.stderr)
            self.assertGreater(target.stat().st_size, 100)
        self.assertEqual(self.convert(self.kpt, self.path, "-q").stderr, "")

    def test_progress_is_shown(self):
        handle, _, _ = _standalone.open(native.load(), self.kpt, False)
        progress = []
        counts = _standalone.write(handle, self.path, progress.append)
        self.assertEqual(progress[-1], counts["calls"])

        def stop(done):
            raise KeyError(done)

        with self.assertRaises(KeyError):
            _standalone.write(handle, self.path, stop)


if __name__ == "__main__":
    unittest.main()
