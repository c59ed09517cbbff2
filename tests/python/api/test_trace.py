"""start, stop and trace: with the sample plugin, whose recording is always the same, and with the
no-op tracer for a Python without a backend."""

import errno
import gzip
import json
import os
import pathlib
import sys
import threading
import unittest
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import Case, SAMPLE

import kpytrace


class Sample(Case):
    def setUp(self):
        super().setUp()
        self.use_plugin(SAMPLE)

    def test_a_block_is_written_at_its_end(self):
        with self.no_warnings(), kpytrace.trace(self.path) as t:
            self.assertTrue(t.running)
            self.assertIsNone(t.summary)
            self.assertFalse(self.path.exists())
        self.assertFalse(t.running)
        self.assertEqual(len(self.calls()), 13)
        self.assertIn("main.py(20): größe", self.names())
        s = t.summary
        self.assertEqual((s.path, s.calls, s.threads, s.functions, s.dropped, s.noop),
                         (str(self.path), 13, 2, 7, 0, None))
        self.assertGreaterEqual(s.seconds, 0)
        self.assertEqual(s.as_dict()["calls"], 13)
        self.assertIn("calls=13", repr(s))

    def test_start_and_stop(self):
        t = kpytrace.start(str(self.path), gc=True, c_calls=False)
        summary = kpytrace.stop()
        self.assertIs(summary, t.summary)
        self.assertEqual(summary.calls, 11)
        collections = [c for c in self.calls() if c["name"] == "Python GC"]
        self.assertEqual([c["args"]["generation"] for c in collections], [2])

    def test_without_an_output_it_can_be_written_later(self):
        t = kpytrace.start()
        self.assertEqual(kpytrace.stop().path, None)
        self.assertEqual(t.summary.calls, 13)
        self.assertEqual(os.listdir(self.folder), [])
        self.assertEqual(t.write(self.path), 13)
        self.assertEqual(t.write(self.folder / "again.json"), 13)
        self.assertEqual(len(self.calls()), 13)

    def test_a_name_that_ends_in_gz_is_compressed(self):
        packed = self.folder / "trace.json.gz"
        with kpytrace.trace(packed) as t:
            pass
        t.write(self.path)
        with gzip.open(packed, "rt", encoding="utf-8") as file:
            found, plain = json.load(file), json.loads(self.path.read_text(encoding="utf-8"))
        self.assertEqual(found.pop("traceName"), str(packed))
        self.assertEqual(plain.pop("traceName"), str(self.path))
        self.assertEqual(found, plain)

    def test_the_block_is_written_though_it_raises(self):
        with self.assertRaises(ZeroDivisionError), kpytrace.trace(self.path):
            1 / 0
        self.assertEqual(len(self.calls()), 13)
        self.assertIsNone(kpytrace._api.trace._active)

    def test_a_second_start_is_refused(self):
        with kpytrace.trace(self.path) as t:
            for begin in (kpytrace.start, kpytrace.trace().start):
                with self.assertRaisesRegex(RuntimeError, "a trace is running already"):
                    begin()
            with kpytrace.trace() as inner:
                with self.assertRaisesRegex(RuntimeError, "a trace is running already"):
                    kpytrace.start()
                self.assertTrue(t.running and inner.running)
            self.assertFalse(inner.running)
            self.assertTrue(t.running)
        with self.assertRaisesRegex(RuntimeError, "has been used already"):
            t.start()
        kpytrace.start()
        kpytrace.stop()

    def test_a_stop_without_a_start_is_refused(self):
        with self.assertRaisesRegex(RuntimeError, r"no trace is running: .*kpytrace.start\(\)"):
            kpytrace.stop()
        with self.assertRaisesRegex(RuntimeError, "has not been started"):
            kpytrace.trace().stop()
        with self.assertRaisesRegex(RuntimeError, "has not been started"):
            kpytrace.trace().stats()

    def test_stopping_twice_gives_the_same(self):
        with kpytrace.trace(self.path) as t:
            first = kpytrace.stop()
            self.assertIs(t.stop(), first)
        self.assertIs(t.summary, first)

    def test_stats_and_close(self):
        t = kpytrace.start()
        self.assertEqual(set(t.stats()), {
            "events", "bytes_held", "events_dropped", "events_repaired", "events_filtered",
            "chunks_sealed", "chunks_refused", "threads", "threads_unreached",
            "functions_disabled", "stacks_walked", "layouts_unknown"})
        with self.assertRaisesRegex(RuntimeError, "stop the trace before you write it"):
            t.write(self.path)
        kpytrace.stop()
        t.close()
        t.close()
        with self.assertRaisesRegex(RuntimeError, "closed"):
            t.write(self.path)

    def test_close_ends_a_running_trace_without_a_file(self):
        t = kpytrace.start(self.path)
        t.close()
        self.assertFalse(t.running)
        self.assertFalse(self.path.exists())
        kpytrace.start()
        kpytrace.stop()

    def test_outputs_are_checked_before_anything_is_traced(self):
        rows = [(self.folder / "none" / "t.json", FileNotFoundError, "does not exist"),
                (self.folder, IsADirectoryError, "folder"),
                ("t.kpt.gz", ValueError, "can't be compressed with gzip"),
                (5, TypeError, "")]
        for output, error, text in rows:
            with self.assertRaisesRegex(error, text, msg=output):
                kpytrace.start(output)
            self.assertIsNone(kpytrace._api.trace._active)

    def test_a_relative_output_means_the_folder_of_the_start(self):
        before = os.getcwd()
        os.chdir(self.folder)
        try:
            with kpytrace.trace("trace.json"):
                os.chdir("/")
        finally:
            os.chdir(before)
        self.assertEqual(len(self.calls()), 13)

    def test_a_failed_write_keeps_the_recording(self):
        t = kpytrace.start("/dev/full")
        with self.assertRaises(OSError) as caught:
            kpytrace.stop()
        self.assertEqual(caught.exception.errno, errno.ENOSPC)
        self.assertEqual(caught.exception.filename, "/dev/full")
        self.assertIsNone(kpytrace._api.trace._active)
        self.assertEqual(t.write(self.path), 13)

    def test_names_of_files_of_any_bytes(self):
        path = os.fsencode(self.folder) + b"/tr\xffce \xc3\xa9.json"
        with kpytrace.trace(path) as t:
            pass
        self.assertEqual(os.fsencode(t.summary.path), path)
        with open(path, encoding="utf-8") as file:
            self.assertIn('"traceName"', file.read())

    def test_one_of_several_threads_starts_and_stops(self):
        begun, failed, summaries = [], [], []
        barrier = threading.Barrier(8)

        def work():
            barrier.wait()
            try:
                begun.append(kpytrace.start(self.path))
            except RuntimeError:
                failed.append(1)
            barrier.wait()
            summaries.append(begun[0].stop())

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((len(begun), len(failed)), (1, 7))
        self.assertEqual(len(set(map(id, summaries))), 1)
        self.assertEqual(len(self.calls()), 13)


class NoOp(Case):
    def setUp(self):
        super().setUp()
        self.use_noop()

    def test_it_warns_where_the_user_called_and_works(self):
        begins = {"start": lambda: kpytrace.start(self.path), "start_of_trace":
                  lambda: kpytrace.trace(self.path).start(), "with":
                  lambda: kpytrace.trace(self.path).__enter__()}
        for name, begin in begins.items():
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                held = begin()
            self.assertTrue(held.running)
            self.assertEqual([w.category for w in caught], [RuntimeWarning], name)
            self.assertRegex(str(caught[0].message),
                             r"kpytrace records nothing: there is no backend for CPython 3\.")
            self.assertEqual(caught[0].filename, __file__, name)
            summary = kpytrace.stop()
            self.assertEqual((summary.calls, summary.dropped), (0, 0))
            self.assertIn("no backend", summary.noop)
            self.assertEqual(self.calls(), [])

    def test_a_warning_that_is_an_error_leaves_nothing_running(self):
        with self.no_warnings(), self.assertRaises(RuntimeWarning):
            kpytrace.start(self.path)
        self.assertIsNone(kpytrace._api.trace._active)


class Missing(Case):
    def test_a_package_without_its_plugin_names_the_fix(self):
        self.use_plugin(self.folder / "libkpytrace.so")
        with self.assertRaisesRegex(ValueError, "the plugin can't be loaded"):
            kpytrace.start()
        self.assertIsNone(kpytrace._api.trace._active)


if __name__ == "__main__":
    unittest.main()
