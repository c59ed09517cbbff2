"""asyncio: the names of the tracks of tasks."""

import asyncio
import pathlib
import sys
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import BACKEND
from task_programs import root, stamp, truth
from task_tracks import TaskCase

import kpytrace


@unittest.skipUnless(BACKEND.exists(), f"there is no {BACKEND.name}")
class Names(TaskCase):
    def test_names(self):
        async def main():
            named = asyncio.create_task(root(), name='a "name"')
            renamed = asyncio.create_task(root())
            renamed.set_name("before")
            await asyncio.sleep(0)
            renamed.set_name("after")  # the name that it has at its first resume stays
            odd = asyncio.create_task(root(), name="\udcff")
            await asyncio.gather(named, renamed, odd)

        names = set(self.traced(main()).names.values())
        self.assertTrue({'a "name" root', "before root", "? root"} <= names, names)
        self.assertTrue(any(name.endswith(" Names.test_names.<locals>.main")
                            or name.endswith(" main") for name in names), names)

    def test_names_of_tasks_that_have_other_texts_and_numbers(self):
        """The name of a task is found among the other objects that it refers to."""
        async def waiting():
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                stamp()

        async def main():
            tasks = [asyncio.create_task(waiting()) for _ in range(4)]
            tasks.append(asyncio.create_task(waiting(), name="named"))
            tasks[0].number = 7
            tasks[1].text = "some text"
            tasks[2].cancel(8)  # before it is first resumed: it never is
            tasks[3].number, tasks[4].number = "9", 9
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel(10)
            await asyncio.gather(*tasks, return_exceptions=True)

        self.traced(main()).check_truth(truth)
        self.assertEqual(len(truth), 4)

    def test_subclasses_and_tasks_in_python(self):
        called = []

        class Named(asyncio.Task):
            def get_name(self):
                called.append(1)
                return "overridden"

        # Since 3.14 asyncio's C part knows nothing of tasks that are written in Python.
        for kind in (Named, asyncio.tasks._PyTask)[:1 + (sys.version_info < (3, 14))]:
            def factory(loop, coroutine, **keywords):
                return kind(coroutine, loop=loop, **keywords)

            async def main():
                asyncio.get_running_loop().set_task_factory(factory)
                task = asyncio.get_running_loop().create_task(root(), name="its own")
                asyncio.get_running_loop().set_task_factory(None)
                await task

            truth.clear()
            with self.subTest(kind=kind.__name__):
                with kpytrace.trace(self.path):
                    with unittest.mock.patch("task_programs.stamp", lambda: None):
                        asyncio.run(main())
                self.assertEqual(len(self.tracks().of("its own")), 3)
        self.assertFalse(called)


if __name__ == "__main__":
    unittest.main()
