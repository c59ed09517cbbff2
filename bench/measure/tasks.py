#!/usr/bin/env python3
"""Measures the cost of the tracks of asyncio's tasks, in the Python that runs this; figures as JSON to
stdout.

usage: PYTHONPATH=BUILD_DIR/package tasks.py [--rounds N] [--only bare|calls|tasks] [--program NAME]

Await-heavy programs run alone, traced without tasks and traced with them, in turns for several rounds.
The best of each counts, since other load on the machine only makes a run slower. A run takes
milliseconds, so that some runs are undisturbed. Times are processor time of the thread. --only runs the
programs one way, for a profiler that counts instructions.
"""
import argparse
import asyncio
import gc
import json
import sys
import time

import kpytrace

WAYS = {"bare": None, "calls": False, "tasks": True}


async def _inner():
    await asyncio.sleep(0)


async def _middle():
    await _inner()


async def _worker(count):
    for _ in range(count):
        await _middle()


async def switching():
    """Fifty tasks that suspend three coroutines deep."""
    await asyncio.gather(*(_worker(20) for _ in range(50)))


async def queues():
    """Producers and consumers."""
    queue = asyncio.Queue(4)

    async def produce():
        for number in range(60):
            await queue.put(number)

    async def consume():
        for _ in range(60):
            await queue.get()

    await asyncio.gather(*(f() for _ in range(8) for f in (produce, consume)))


async def _short():
    await asyncio.sleep(0)


async def short_tasks():
    """Creates new tasks all the time; the tracer reads the name of each."""
    for _ in range(6):
        await asyncio.gather(*(_short() for _ in range(50)))


async def streams():
    """An echo server and its clients on loopback."""
    async def serve(reader, writer):
        while line := await reader.readline():
            writer.write(line)
            await writer.drain()
        writer.close()

    async def client(port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(20):
            writer.write(b"hello\n")
            await writer.drain()
            await reader.readline()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        await asyncio.gather(*(client(port) for _ in range(10)))


PROGRAMS = (switching, queues, short_tasks, streams)


def timed(program, tasks):
    """The processor's ns of one run, and its calls."""
    trace = None if tasks is None else kpytrace.start(tasks=tasks)
    try:
        with_loop = program()
        begin = time.thread_time_ns()
        asyncio.run(with_loop)
        spent = time.thread_time_ns() - begin
        events = trace.stats()["events"] if trace else 0
    finally:
        if trace:
            trace.close()
    return spent, events // 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--only", choices=WAYS)
    parser.add_argument("--program", choices=[p.__name__ for p in PROGRAMS])
    given = parser.parse_args()
    ways = {given.only: WAYS[given.only]} if given.only else WAYS
    result = {}
    gc.disable()  # a collection would add to the time of whichever way runs then
    for program in PROGRAMS:
        if given.program not in (None, program.__name__):
            continue
        best, calls = {}, 0
        for _ in range(given.rounds):
            gc.collect()
            for way, tasks in ways.items():
                ns, count = timed(program, tasks)
                best[way] = min(best.get(way, ns), ns)
                calls = max(calls, count)
        result[program.__name__] = row = {f"{way}_ms": ns / 1e6 for way, ns in best.items()}
        if not given.only:
            row["calls"] = calls
            row["added"] = (best["tasks"] - best["calls"]) / (best["calls"] - best["bare"])
    json.dump({"python": sys.version.split()[0], "programs": result}, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
