"""kpytrace explain: programs with a planted fault of each kind, in which it is found, and programs that are like them and
have none. tests/native/writers/findings_test.cc has the limits; here are real recordings."""

import asyncio
import gc
import http.client
import http.server
import json
import pathlib
import queue
import random
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import Case, run_python
from test_report import sections, text_of

import kpytrace
from kpytrace import _standalone
from kpytrace._api import native


def in_threads(count, work):
    threads = [threading.Thread(target=work, name=f"worker-{i}") for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def contend(lock, count=4, of=None):
    """Threads that wait for a lock at the same time, which this one holds meanwhile."""
    started = threading.Semaphore(0)

    def update():
        lock.acquire()
        time.sleep(.01)
        lock.release()

    def work():
        started.release()
        (of or update)()

    lock.acquire()
    threads = [threading.Thread(target=work, name=f"worker-{i}") for i in range(count)]
    for thread in threads:
        thread.start()
    for _ in threads:
        started.acquire()
    time.sleep(.1)
    lock.release()
    for thread in threads:
        thread.join()


class Explain(Case):
    def setUp(self):
        super().setUp()
        self.kpt = self.folder / "trace.kpt"

    def record(self, work, **options):
        with kpytrace.trace(self.kpt, **options):
            work()
        return self.explained()

    def explained(self):
        handle, _, _ = _standalone.open(native.load(), self.kpt, False)
        return json.loads(_standalone.explain(handle, None))

    def found(self, kind, work, **options):
        """Returns the findings of KIND in a recording of WORK, which has some."""
        found = [finding for finding in self.record(work, **options)["findings"] if finding["kind"] == kind]
        self.assertTrue(found, kind)
        return found

    def assert_clean(self, work, **options):
        """Checks that a recording has no finding. A machine that is busy may stop a thread for long, which is a finding,
        and true: so one of five recordings has to have none."""
        for _ in range(5):
            findings = self.record(work, **options)["findings"]
            if not findings:
                return
        self.fail([finding["text"] for finding in findings])

    def said(self, *words, status=0):
        done = run_python("-m", "kpytrace", "explain", *map(str, words), cwd=self.folder)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout if status == 0 else done.stderr


class Faults(Explain):
    def test_waits_at_a_lock(self):
        lock = threading.Lock()

        def short_update():
            lock.acquire()
            lock.release()
            time.sleep(.01)

        finding, *_ = self.found("lock", lambda: contend(lock))
        self.assertIn(finding["evidence"]["threads"], (2, 3, 4))  # one that starts late may find it free
        self.assertIn("update", finding["evidence"]["by"]["short"])
        self.assertEqual(finding["evidence"]["by"]["line"], contend.__code__.co_firstlineno + 4)
        self.assertIn("worker-", finding["places"][0]["thread"])
        self.assertEqual(finding["places"][0]["ns"], finding["evidence"]["longest_ns"])
        self.assert_clean(lambda: in_threads(4, lambda: [short_update() for _ in range(5)]))

    def test_waits_at_a_semaphore(self):
        finding, *_ = self.found("lock", lambda: contend(threading.Semaphore(1)))
        self.assertIn("acquire", finding["evidence"]["in"]["short"])
        self.assertIn("update", finding["evidence"]["by"]["short"])

    def test_threads_that_never_ran(self):
        def pool(queues, items):
            def worker(own):
                while own.get() is not None:
                    time.sleep(.001)

            threads = [threading.Thread(target=worker, args=(own,)) for own in queues]
            for thread in threads:
                thread.start()
            for number in range(items):
                queues[number].put(number)
            time.sleep(.15)
            for each in queues:
                each.put(None)
            for thread in threads:
                thread.join()

        finding, = self.found("idle_threads", lambda: pool([queue.Queue()] * 6, 2))
        self.assertGreaterEqual(finding["evidence"]["idle_threads"], 2)
        self.assertIn("worker", finding["evidence"]["by"]["short"])
        self.assert_clean(lambda: pool([queue.Queue() for _ in range(6)], 6))

    def test_tasks_that_block_the_event_loop(self):
        async def answer(pause):
            pause(.15)

        async def give_way():
            await asyncio.sleep(.15)

        async def blocks():
            await asyncio.gather(answer(time.sleep), give_way())

        async def gives_way():
            await asyncio.gather(give_way(), give_way())

        asyncio.run(gives_way())  # imports what asyncio imports late
        finding, = self.found("blocked_loop", lambda: asyncio.run(blocks()))
        self.assertIn("answer", finding["evidence"]["coroutine"])
        self.assertIn("sleep", finding["evidence"]["in"]["short"])
        self.assertGreaterEqual(finding["evidence"]["longest_ns"], 150_000_000)
        self.assert_clean(lambda: asyncio.run(gives_way()))

    def test_functions_that_become_slower(self):
        def run(seen, add):
            def lookup(value):
                return value in seen

            for number in range(1500):
                lookup(-number)
                add(range(20 * number, 20 * number + 20))

        items, known = [], set()
        finding, = self.found("slower", lambda: run(items, items.extend))
        self.assertIn("lookup", finding["evidence"]["function"]["short"])
        self.assertGreater(finding["evidence"]["last_median_ns"], 2 * finding["evidence"]["first_median_ns"])
        self.assertEqual(finding["evidence"]["calls"], 1500)
        self.assert_clean(lambda: run(known, known.update))

    def test_garbage_collections(self):
        heap = [[number] for number in range(300_000)]
        self.assertEqual(len(heap), 300_000)

        def collect():
            for _ in range(10):
                gc.collect()

        def free():
            for _ in range(10):
                sorted(range(100_000), key=lambda number: -number)

        finding, = self.found("gc", collect, gc=True)
        self.assertGreaterEqual(finding["evidence"]["count"], 10)
        self.assertIn("generation 2", finding["text"])
        finding, = self.found("gc", collect)  # without --gc: the calls of gc.collect
        self.assertIn("gc.collect", finding["text"])
        del heap
        gc.collect()
        self.assert_clean(free, gc=True)

    def test_what_is_missing(self):
        def work():
            for _ in range(1000):
                len("")

        finding, = self.found("missing", work, max_events=100)
        self.assertGreater(finding["evidence"]["count"], 1000)
        self.assert_clean(work)


class CleanPrograms(Explain):
    def test_parsing(self):
        text = json.dumps([{"name": str(number), "values": list(range(20))} for number in range(200)])
        self.assert_clean(lambda: [json.loads(text) for _ in range(50)])

    def test_sorting(self):
        def order(values):
            return sorted(values, key=lambda pair: pair[1])

        rows = [(number, random.random()) for number in range(2000)]
        self.assert_clean(lambda: [order(rows) for _ in range(50)])

    def test_a_server(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = json.dumps({"path": self.path}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        def serve():
            with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
                thread = threading.Thread(target=server.serve_forever, args=(.01,))
                thread.start()
                for number in range(50):
                    client = http.client.HTTPConnection(*server.server_address)
                    client.request("GET", f"/{number}")
                    self.assertEqual(client.getresponse().status, 200)
                    client.close()
                server.shutdown()
                thread.join()

        self.assert_clean(serve)


class Command(Explain):
    def work(self):
        contend(threading.Lock())

    def test_the_page_has_the_same(self):
        found = self.record(self.work)
        page = self.folder / "report.html"
        run_python("-m", "kpytrace", "report", str(self.kpt), "-o", str(page), cwd=self.folder)
        (_, _, data), = sections(page)
        self.assertEqual(text_of(data)["findings"], found)
        self.assertEqual(json.loads(self.said("--json", self.kpt)), found)

    def test_the_members_of_the_json(self):
        found = self.record(self.work)
        self.assertEqual(list(found), ["format", "first_ns", "duration_ns", "calls", "threads", "own", "modules", "more_modules",
                                       "waits", "findings", "limits"])
        self.assertEqual(found["format"], 1)
        self.assertEqual(list(found["own"][0]), ["name", "short", "file", "line", "calls", "own_ns", "share", "waits", "longest"])
        self.assertEqual(list(found["own"][0]["longest"]), ["at_ns", "ns", "tid", "thread"])
        self.assertEqual(list(found["modules"][0]), ["module", "own_ns", "share"])
        self.assertEqual(list(found["waits"][0]), ["for", "in", "by", "count", "threads", "total_ns", "longest"])
        self.assertEqual(list(found["findings"][0]), ["kind", "title", "text", "evidence", "places"])
        self.assertLessEqual(sum(row["share"] for row in found["modules"]), 1)

    def test_the_largest_own_times_are_those_of_top(self):
        found = self.record(self.work)
        handle, _, _ = _standalone.open(native.load(), self.kpt, False)
        rows = _standalone.profile(handle, 0, 3, False, None)
        self.assertEqual([(row["name"].encode(), row["calls"], row["own_ns"]) for row in found["own"]],
                         [(row[0], row[5], row[6]) for row in rows])

    def test_what_it_prints(self):
        self.record(self.work)
        text = self.said(self.kpt)
        for part in ("largest own times", "own time by module", "longest waits", "findings\n  1. ", "not in the recording"):
            self.assertIn(part, text)
        with kpytrace.trace(self.kpt):
            pass
        self.assertIn("\nno findings\n", self.said("-q", self.kpt))
        self.assertIn("usage: kpytrace explain", self.said("--help"))
        self.assertIn("usage: kpytrace explain", self.said(status=2))

    def test_a_name_commands_no_terminal(self):
        strange = "a\nb\x1b[31m\u202e"
        lock = threading.Lock()

        def update():
            lock.acquire()
            time.sleep(.02)
            lock.release()

        update.__code__ = update.__code__.replace(co_name=strange)
        with kpytrace.trace(self.kpt):
            contend(lock, of=update)
        text = self.said(self.kpt)
        self.assertEqual([c for c in text if not c.isprintable() and c != "\n"], [])

    def test_an_exception_ends_the_reading(self):
        def stop(done):
            raise KeyboardInterrupt

        with kpytrace.trace(self.kpt):
            for _ in range(100_000):
                len("")
        handle, _, _ = _standalone.open(native.load(), self.kpt, False)
        with self.assertRaises(KeyboardInterrupt):
            _standalone.explain(handle, stop)
        self.assertGreater(json.loads(_standalone.explain(handle, None))["calls"], 100_000)


if __name__ == "__main__":
    unittest.main()
