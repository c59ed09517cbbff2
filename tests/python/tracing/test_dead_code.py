"""Code objects that die while they are in the caches: the cost does not depend on the depth of the stack, and
another code object at the same address has its own name and lines (issue 23, 4)."""

import threading
import types
import unittest

from host_case import HostCase, abi_host
from support import FREE_THREADED


def at_depth(levels, work):
    return at_depth(levels - 1, work) if levels else work()


def function_of(name, first_line=1, body="return 1"):
    """Returns a function with the only reference to its code."""
    source = "\n" * (first_line - 1) + f"def {name}():\n    {body}\n"
    module = compile(source, "<made>", "exec")
    code = next(c for c in module.co_consts if isinstance(c, types.CodeType))
    return types.FunctionType(code, {"len": len})


def evaluate(tracer):
    """Returns how many stacks were walked while 200 code objects died."""
    before = tracer.stats()["stacks_walked"]
    for n in range(200):
        eval(f"{n} + {n}")
    return tracer.stats()["stacks_walked"] - before


class DeadCode(HostCase):
    def delivered(self, tracer):
        tracer.stop()
        delivery = tracer.deliver(abi_host.ORDER_START)
        return [(delivery.names[a.name].function.text, a) for a in delivery.activities]

    def test_no_stack_is_walked(self):
        """Before the fix, each dead code object made every thread walk its whole stack at its next event."""
        tracer = self.make()
        self.assertGreaterEqual(tracer.stats()["stacks_walked"], 1, "where recording begins")
        for levels in (1, 1, 100):
            walked = at_depth(levels, lambda: evaluate(tracer))
            self.assertEqual(walked, 0, levels)

    def test_an_address_that_is_used_again(self):
        addresses = set()
        tracer = self.make()
        for n in range(300):
            function = function_of(f"made_{n}")
            function()
            addresses.add(id(function.__code__))
            del function
        self.assertLess(len(addresses), 300, "no address was used again: the test shows nothing")
        made = [name for name, _ in self.delivered(tracer) if name.startswith("made_")]
        self.assertEqual(made, [f"made_{n}" for n in range(300)])

    def test_lines_of_generators(self):
        """The line at which a generator resumes is cached by code and instruction."""
        tracer = self.make()
        for n in range(1, 100):
            list(function_of("generate", n, "yield 1; yield 2")())
        lines = [a.line for name, a in self.delivered(tracer) if name == "generate"]
        self.assertEqual(lines[1::3], list(range(2, 101)))

    def test_lines_of_callers(self):
        """The line of a caller, for a host that marks, is cached in the same way."""
        tracer = self.make()
        tracer.mark()
        for n in range(1, 100):
            function_of("caller", n, "return len('')")()
        lines = [a.value2 for name, a in self.delivered(tracer) if name == "len"]
        self.assertEqual(lines[-99:], list(range(2, 101)))

    def test_caches_of_other_threads(self):
        """A thread that has a code object in its caches runs another one at that address, after a few deaths, and
        after more deaths than the list of dead code keeps."""
        work, done = threading.Semaphore(0), threading.Semaphore(0)
        box, addresses = [], set()

        def run():  # leaves the last reference in the box: the code dies while this thread waits
            while work.acquire() and box:
                addresses.add(id(box[0].__code__))
                box[0]()
                done.release()

        thread = threading.Thread(target=run)
        tracer = self.make()
        thread.start()
        for n in range(200):
            for k in range(n % 40):
                function_of(f"between_{k}")()
            box.append(function_of(f"made_{n}"))
            work.release()
            done.acquire()
            box.clear()
        work.release()
        thread.join()
        if not FREE_THREADED:  # its allocator delays the reuse of memory
            self.assertLess(len(addresses), 200, "no address was used again: the test shows nothing")
        made = [name for name, _ in self.delivered(tracer) if name.startswith("made_")]
        self.assertEqual(made, [f"made_{n}" for n in range(200)])


if __name__ == "__main__":
    unittest.main()
