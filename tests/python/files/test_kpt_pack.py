"""Packed .kpt files: streams, dumps and written files, after a kill and a fork, by every command."""

import json
import os
import pathlib
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
from kpytrace._files.kpt_header import File

GOLDEN = pathlib.Path(__file__).parent / "golden"


class Packed(Case):
    def setUp(self):
        super().setUp()
        self.kpt = self.folder / "trace.kpt"

    def command(self, *words):
        reply = run_python("-m", "kpytrace", *map(str, words))
        self.assertEqual(reply.returncode, 0, reply.stderr)
        return reply.stdout

    def leaves(self, path, thread=None):
        handle, _, _ = _standalone.open(native.load(), path, False)
        return sum(row[5] for row in _standalone.profile(handle, 0, 2**32 - 1, True, None)
                   if row[0].endswith(b": leaf") and (thread is None or row[4] == thread))

    def trace_of(self, path):
        self.command("convert", "-q", path, self.path)
        trace = json.loads(self.path.read_text())
        del trace["traceName"]
        return trace


class Programs(Packed):
    def test_a_file_is_smaller_and_has_the_same(self):
        with kpytrace.trace(gc=True) as t:
            with kpytrace.span("a span"):
                work(3000)
            thread = threading.Thread(target=work, args=(20000,), name="t")
            thread.start()
            thread.join()
        t.write(self.kpt)
        t.write(self.path)
        direct = json.loads(self.path.read_text())
        del direct["traceName"]
        self.assertEqual(self.trace_of(self.kpt), direct)
        self.assertLess(self.kpt.stat().st_size, 6 * t.summary.calls)

    def test_a_stream_holds_all(self):
        with kpytrace.trace(self.kpt, flush_ns="10ms") as t:
            threads = [threading.Thread(target=work, args=(20000,)) for _ in range(3)]
            for thread in threads:
                thread.start()
            work(30000)
            for thread in threads:
                thread.join()
        self.assertEqual(self.leaves(self.kpt), 90000)
        self.assertEqual(t.summary.dropped, 0)
        self.assertLess(self.kpt.stat().st_size, 6 * t.summary.calls)
        self.assertTrue(File(str(self.kpt)).ended)

    def test_a_stream_is_read_and_written_while_it_runs(self):
        with kpytrace.trace(self.kpt):
            for done in range(1, 4):
                work(10000)
                self.assertEqual(self.leaves(kpytrace.dump(self.folder / "copy.kpt")), done * 10000)
                self.assertEqual(self.leaves(self.kpt), done * 10000, "all is in the file")

    def test_a_stream_to_another_format(self):
        with kpytrace.trace(self.path, stream=True):
            work(1000)
        names = [e["name"] for e in json.loads(self.path.read_text())["traceEvents"] if e["ph"] == "X"]
        self.assertEqual(sum(name.endswith(": leaf") for name in names), 1000)

    def test_a_dump_of_a_ring(self):
        with kpytrace.trace(self.kpt, ring="64MB") as t:
            work(20000)
            path = kpytrace.dump()
        self.assertEqual(self.leaves(path), 20000)
        self.assertLess(os.path.getsize(path), 6 * t.summary.calls)

    def test_a_fork_leaves_the_stream_alone(self):
        with kpytrace.trace(self.kpt, flush_ns="1ms"):
            for _ in range(20):
                work(1000)
                pid = os.fork()
                if not pid:
                    work(100)
                    os._exit(0)
                self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertEqual(self.leaves(self.kpt), 20000)

    @unittest.skipIf("ASAN_OPTIONS" in os.environ, "AddressSanitizer keeps what was freed")
    def test_memory_stays_bounded(self):
        """The memory is smaller than the events, also while they are unpacked."""
        result = run_python("-c", WORK + textwrap.dedent(f"""
            import kpytrace
            def highest():
                lines = open("/proc/self/status").read().splitlines()
                return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
            before = highest()
            t = kpytrace.start({str(self.kpt)!r})
            work(4_000_000)
            t.stop()
            t.write("/dev/null")
            print(highest() - before)
            """))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertLess(int(result.stdout), 48_000)


class Death(Packed):
    def test_exit_without_the_end(self):
        """os._exit after a flush, which waits until all is packed and written."""
        for text in ("kpytrace.dump(sys.argv[2])", "time.sleep(0.5)"):
            reply = run_python("-c", WORK + textwrap.dedent(f"""
                import kpytrace, os, time
                kpytrace.start(sys.argv[1], flush_ns="10ms")
                work(50000)
                {text}
                os._exit(0)
                """), str(self.kpt), str(self.path))
            self.assertEqual(reply.returncode, 0, reply.stderr)
            self.assertEqual(self.leaves(self.kpt), 50000, text)

    @unittest.skipIf("ASAN_OPTIONS" in os.environ, "AddressSanitizer takes the signal")
    def test_a_crash_flushes(self):
        reply = run_python("-c", WORK + textwrap.dedent("""
            import kpytrace, os, signal
            kpytrace.start(sys.argv[1], flush_ns="1000s")
            work(50000)
            os.kill(os.getpid(), signal.SIGSEGV)
            """), str(self.kpt))
        self.assertNotEqual(reply.returncode, 0)
        self.assertEqual(self.leaves(self.kpt), 50000)


class Commands(Packed):
    def setUp(self):
        super().setUp()
        with kpytrace.trace(self.kpt, compress=False):
            work(20000)
        self.packed = self.folder / "packed.kpt"

    def test_convert_packs(self):
        self.command("convert", "-q", self.kpt, self.packed)
        self.assertLess(self.packed.stat().st_size, self.kpt.stat().st_size / 2)
        self.assertEqual(self.trace_of(self.packed), self.trace_of(self.kpt))
        again = self.folder / "again.kpt"
        self.command("convert", "-q", "--no-compress", self.kpt, again)
        self.assertGreater(again.stat().st_size, 16 * 20000)
        self.command("convert", "-q", "--no-compress", self.packed, again)
        self.assertEqual(again.stat().st_size, self.packed.stat().st_size, "packed events stay so")

    def test_run_packs_unless_told(self):
        script = self.folder / "script.py"
        script.write_text(WORK + "work(20000)\n")
        self.command("run", "-q", "-o", self.packed, script)
        self.assertEqual(self.leaves(self.packed), 20000)
        self.assertLess(self.packed.stat().st_size, 6 * 20000)
        for words, environment in ((["--no-compress"], {}), ([], {"KPYTRACE_COMPRESS": "0"})):
            reply = run_python("-m", "kpytrace", "run", "-q", *words, "-o", str(self.packed), str(script),
                               env={**os.environ, **environment})
            self.assertEqual(reply.returncode, 0, reply.stderr)
            self.assertEqual(self.leaves(self.packed), 20000)
            self.assertGreater(self.packed.stat().st_size, 16 * 20000)

    def test_every_command_prints_the_same(self):
        """On files of every format, the commands print the same as on the unpacked files."""
        for name in ("calls", "operators", "inputs", "range_inputs"):
            plain, packed = GOLDEN / f"{name}.kpt", GOLDEN / f"packed_{name}.kpt"
            self.assertEqual(self.trace_of(plain), self.trace_of(packed), name)
            for words in (("top", "-q", "-n", "0"), ("top", "-q", "-n", "0", "--threads"),
                          ("top", "-q", "-n", "0", "--ops", "--callers"), ("top", "-q", "--tasks")):
                self.assertEqual(self.command(*words, plain), self.command(*words, packed), (name, words))
            for suffix in ("speedscope.json", "collapsed"):
                out, texts = self.folder / f"out.{suffix}", []
                for file in plain, packed:
                    self.command("convert", "-q", file, out)
                    texts.append(out.read_text())
                self.assertEqual(*texts)
            self.command("merge", "-q", plain, packed, "-o", self.path)
            self.command("report", "-q", packed, "-o", self.folder / "page.html")
            self.assertEqual(self.command("diff", "-q", plain, packed), self.command("diff", "-q", plain, plain))

    def test_damage_is_read_up_to_it(self):
        self.command("convert", "-q", self.kpt, self.packed)
        data = bytearray(self.packed.read_bytes())
        data[len(data) // 2] ^= 1
        self.packed.write_bytes(data)
        reply = run_python("-m", "kpytrace", "info", str(self.packed))
        self.assertEqual(reply.returncode, 1)
        self.assertIn("damaged", reply.stderr)
        self.assertIn("calls:", self.command("info", "--recover", self.packed))
        for cut in (100, len(data) // 3, len(data) - 1):
            self.packed.write_bytes(self.packed.read_bytes()[:cut])
            self.command("info", "--recover", self.packed)


if __name__ == "__main__":
    unittest.main()
