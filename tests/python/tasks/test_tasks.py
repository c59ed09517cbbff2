"""asyncio: each task has a track with its name, and each of its resumes lies there. The programs note
themselves which task runs where, and the trace is compared with that."""

import asyncio
import gc
import json
import os
import pathlib
import subprocess
import sys
import threading
import unittest
import unittest.mock
import weakref

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import BACKEND, FREE_THREADED, READERS, run_python
from task_programs import root, stamp, truth
from task_tracks import TaskCase

import kpytrace


@unittest.skipUnless(BACKEND.exists(), f"there is no {BACKEND.name}")
class Tasks(TaskCase):
    def test_an_await_chain_is_whole_in_each_resume(self):
        async def main():
            await asyncio.gather(asyncio.create_task(root(3), name="chain"), root(), root())

        tracks = self.traced(main())
        slices = tracks.of("chain")
        self.assertEqual(len(slices), 4)
        lines = set()
        for e in slices:
            chain = [tracks.within(e, name) for name in ("root", "branch", "leaf", "stamp")]
            self.assertEqual([len(calls) for calls in chain], [1, 1, 1, 1])
            ids = [calls[0]["args"]["Python id"] for calls in chain]
            parents = [calls[0]["args"]["Python parent id"] for calls in chain]
            self.assertEqual(ids[:-1], parents[1:])
            lines.add(chain[2][0]["args"].get("line"))
        self.assertEqual(len(lines), 2)  # at its first line, and behind the await
        tracks.check_truth(truth)

    def test_many_that_are_new_at_old_addresses(self):
        addresses = set()

        async def main():
            for number in range(300):
                tasks = [asyncio.create_task(root(), name=f"{number}-{i}") for i in range(10)]
                addresses.update(map(id, tasks))
                await asyncio.gather(*tasks)
                if number == 150:
                    gc.collect()

        tracks = self.traced(main())
        self.assertLess(len(addresses), 3000)
        tracks.check_truth(truth)
        self.assertGreater(len(truth), 8900)
        self.assertEqual(len([n for n in tracks.names.values() if n.endswith(" root")]), 3000)

    def test_groups_exceptions_and_cancelling(self):
        async def failing():
            stamp()
            await asyncio.sleep(0)
            stamp()
            raise ValueError

        async def waiting():
            stamp()
            try:
                await asyncio.sleep(60)
            finally:
                stamp()  # thrown into

        async def main():
            cancelled = asyncio.create_task(waiting(), name="cancelled")
            failed = asyncio.create_task(failing(), name="failed")
            await asyncio.sleep(0)
            cancelled.cancel()
            await asyncio.gather(cancelled, failed, return_exceptions=True)
            if hasattr(asyncio, "TaskGroup"):
                try:
                    async with asyncio.TaskGroup() as group:
                        group.create_task(failing(), name="grouped-1")
                        group.create_task(waiting(), name="grouped-2")
                except BaseException:  # except* is no syntax of 3.10
                    pass
            stamp()

        tracks = self.traced(main())
        tracks.check_truth(truth)
        self.assertEqual(len(tracks.of("cancelled")), 2)
        self.assertEqual(len(tracks.of("failed")), 2)

    @unittest.skipUnless(hasattr(asyncio, "eager_task_factory"), "there are no eager tasks")
    def test_eager_tasks(self):
        async def quick():
            stamp()

        def begin(coroutine, name):  # create_task itself sets the name later, up to 3.13
            return asyncio.Task(coroutine, loop=asyncio.get_running_loop(), name=name, eager_start=True)

        async def main():
            stamp()
            tasks = [begin(quick(), "never-waits"), begin(root(), "waits")]
            stamp()
            if not FREE_THREADED and sys.version_info < (3, 15):  # whose frames are known from the inside
                # By the coroutine itself, as aiohttp does it: no await, though a coroutine is below.
                for name, coroutine in (("direct", quick()), ("direct-waits", root())):
                    tasks.append(asyncio.Task(coroutine, loop=asyncio.get_running_loop(), name=name,
                                              eager_start=True))
                    stamp()
            await asyncio.gather(*tasks)
            stamp()

        tracks = self.traced(main())
        tracks.check_truth(truth)
        self.assertEqual(len(tracks.of("never-waits")), 1)
        self.assertEqual(len(tracks.of("waits")), 3)
        if "direct" in [name for _, name in truth]:
            self.assertEqual(len(tracks.of("direct")), 1)
            self.assertEqual(len(tracks.of("direct-waits")), 3)

    def test_loops_in_threads_and_executors(self):
        async def main(number):
            loop = asyncio.get_running_loop()
            tasks = [asyncio.create_task(root(20), name=f"{number}.{i}") for i in range(5)]
            await loop.run_in_executor(None, stamp_nowhere)
            await asyncio.gather(*tasks)

        def stamp_nowhere():
            truth.append((threading.get_native_id(), None))

        with kpytrace.trace(self.path):
            threads = [threading.Thread(target=lambda n=n: asyncio.run(main(n))) for n in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        tracks = self.tracks()
        tracks.check_truth([t for t in truth if t[1]])
        self.assertEqual(len([n for n in tracks.names.values() if n.endswith(" root")]), 20)

    def test_by_hand_there_is_no_task(self):
        def drive(coroutine):
            try:
                while True:
                    coroutine.send(None)
            except StopIteration:
                pass

        async def by_hand():
            stamp_by_hand()
            await asyncio.sleep(0)
            stamp_by_hand()

        def stamp_by_hand():
            pass

        async def main():
            stamp()
            drive(by_hand())  # within the task, and no resume of it
            stamp()

        with kpytrace.trace(self.path):
            drive(by_hand())
        self.assertFalse(self.tracks().slices)
        tracks = self.traced(main())
        tracks.check_truth(truth)
        self.assertEqual(len(tracks.of("Task-" + truth[0][1].partition("-")[2])), 1)

    def test_asynchronous_generators(self):
        async def numbers():
            for number in range(3):
                stamp()
                await asyncio.sleep(0)
                yield number

        async def main():
            async def consume():
                return [n async for n in numbers()]

            left = numbers()
            await left.__anext__()
            del left  # asyncio closes it in a task
            await asyncio.gather(asyncio.create_task(consume(), name="one"),
                                 asyncio.create_task(consume(), name="two"))

        self.traced(main()).check_truth(truth)

    def test_a_server_under_load(self):
        """asyncio's streams on loopback: each handler and each client is a task."""
        async def handle(reader, writer):
            while await reader.readline():
                stamp()
                writer.write(b"answer\n")
                await writer.drain()
            writer.close()

        async def client(port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for _ in range(20):
                writer.write(b"question\n")
                await writer.drain()
                await reader.readline()
                stamp()
            writer.close()
            await writer.wait_closed()

        async def main():
            server = await asyncio.start_server(handle, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            async with server:
                await asyncio.gather(*(client(port) for _ in range(25)))

        tracks = self.traced(main())
        self.assertEqual(len(truth), 2 * 25 * 20)
        tracks.check_truth(truth)

    def test_formats_agree(self):
        async def main():
            await asyncio.gather(*(asyncio.create_task(root(5), name=f"t{i}") for i in range(20)))

        kpt = self.folder / "trace.kpt"
        with kpytrace.trace(kpt) as trace:
            asyncio.run(main())
        trace.write(self.path)
        tracks = self.tracks()
        tracks.check_truth(truth)
        command = [sys.executable, "-m", "kpytrace"]
        subprocess.run([*command, "convert", "-q", kpt, self.folder / "again.json"], check=True)
        again = self.tracks(self.folder / "again.json")
        self.assertEqual([(e["name"], e["ts"], e["dur"], e["args"]) for e in again.slices],
                         [(e["name"], e["ts"], e["dur"], e["args"]) for e in tracks.slices])
        rows = subprocess.run([*command, "top", "--tasks", "-n", "0", kpt], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.splitlines()[1:]
        self.assertEqual(len(rows), len(tracks.names))
        self.assertIn(["6", "t3 root"], [[r.split()[0], " ".join(r.split()[-2:])] for r in rows])
        rows = subprocess.run([*command, "top", "--coroutines", kpt], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.splitlines()[1:]
        self.assertIn(["20", "120", "root"], [[*r.split()[:2], r.split()[-1]] for r in rows])
        if READERS and os.path.exists(READERS):
            self.compare_with_perfetto(trace, tracks)

    def compare_with_perfetto(self, trace, tracks):
        trace.write(self.folder / "trace.pftrace")
        reader = pathlib.Path(__file__).parents[1] / "support" / "perfetto_calls.py"
        read = json.loads(subprocess.check_output([READERS, reader, self.folder / "trace.pftrace"]))
        base = self.read_trace()["baseTimeNanoseconds"]
        expected = sorted([tracks.names[e["tid"]], e["name"], round(e["ts"] * 1000) + base,
                           round((e["ts"] + e["dur"]) * 1000) + base] for e in tracks.slices)
        self.assertEqual(sorted(read["tasks"]), expected)

    def test_left_out(self):
        self.assertFalse(self.traced(root(), tasks=False).names)
        with unittest.mock.patch.dict(os.environ, KPYTRACE_TASKS="0"):
            self.assertFalse(self.traced(root()).names)
        # Nor is a longer call taken for a resume that is too short.
        self.assertFalse(self.traced(root(), min_duration_ns="1s").slices)

    def test_in_the_middle_of_tasks(self):
        """A trace begins and ends within a task, twice. The resume that was running is unknown."""
        async def main(path):
            tasks = [asyncio.create_task(root(6), name=f"t{i}") for i in range(3)]
            await asyncio.sleep(0)
            truth.clear()
            kpytrace.start(path)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            kpytrace.stop()
            kept = list(truth)
            await asyncio.gather(*tasks)
            return kept

        for number in range(2):
            path = self.folder / f"{number}.json"
            kept = asyncio.run(main(path))
            self.assertEqual(len(kept), 6)
            self.tracks(path).check_truth(kept)

    def test_a_flight_recorder(self):
        async def main():
            for number in range(200):
                await asyncio.gather(*(asyncio.create_task(root(), name=f"{number}-{i}") for i in range(10)))

        tracks = self.traced(main(), ring_bytes="256kB")
        stamps = len([c for c in tracks.calls if c["name"].endswith(": stamp")])
        self.assertLess(stamps, len(truth))
        last = [n for n in tracks.names.values() if n.startswith("199-")]
        self.assertEqual(len(last), 10)

    def test_more_tasks_than_tracks(self):
        async def nothing():
            pass

        async def main():
            for _ in range(101):
                await asyncio.gather(*(nothing() for _ in range(100)))

        tracks = self.traced(main())
        self.assertEqual(len(tracks.names), 10_000)
        self.assertGreaterEqual(tracks.other["tasks without a track"], 100)

    def test_a_program_without_asyncio_pays_nothing(self):
        """Tracing does not import asyncio."""
        out = run_python("-c", "import sys, kpytrace\nasync def f(): pass\n"
                         "with kpytrace.trace():\n"
                         "    try: f().send(None)\n"
                         "    except StopIteration: pass\n"
                         "print('_asyncio' in sys.modules)")
        self.assertEqual(out.stdout.split(), ["False"], out)

    def test_tasks_are_not_kept_alive(self):
        async def main():
            task = asyncio.create_task(root())
            await task
            seen = weakref.ref(task)
            del task
            await asyncio.sleep(0)
            gc.collect()
            return seen()

        with kpytrace.trace(self.path):
            self.assertIsNone(asyncio.run(main()))


if __name__ == "__main__":
    unittest.main()
