"""The programs of the tests of tasks. They record themselves which task runs where."""

import asyncio
import threading

truth = []


def stamp():
    """Records the running task. The trace has this call, too."""
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
