"""What tasks run in the tests: programs that note themselves which task runs where."""

import asyncio
import threading

truth = []


def stamp():
    """Notes who runs; a call that the trace has, too."""
    task = asyncio.current_task()
    truth.append((threading.get_native_id(), task.get_name() if task else None))


async def leaf(times):
    for _ in range(times):
        stamp()
        await asyncio.sleep(0)
    stamp()


async def branch(times):
    await leaf(times)


async def root(times=2):
    await branch(times)
