"""The overhead guard: code with too many and too short calls is switched off while it runs, and reported with its
calls until then. The program runs as before, and no other calls are missing."""

import re
import threading
import time
import unittest

from host_case import HostCase
from support import RECOVERED

CALLS = 30_000
BUDGET = 5  # permille: exceeded if a call takes less than 18 µs, as also on a slow machine under a sanitizer


def tiny():
    return 1


def leaf():
    pass


def sometimes(n):
    if n % 1000 == 999:
        leaf()
    return n


def slow():
    time.sleep(0.002)


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def hot(function=tiny):
    total = 0
    for _ in range(CALLS):
        total += function()
    return total


class Guard(HostCase):
    def setUp(self):
        super().setUp()
        self.said = []
        self.listening = self.new_host(log=lambda level, text: self.said.append(text))

    def record(self, work, permille=BUDGET, **options):
        tracer = self.make(host=self.listening, overhead_permille=permille, **options)
        try:
            self.result = work()
        finally:
            tracer.stop()
        return tracer.recording()

    def reported(self):
        """Returns function -> its calls until it was switched off, from the host's log."""
        rows = [re.fullmatch(r"overhead: stopped recording .*\): (.+) after (\d+) calls", text)
                for text in self.said if text.startswith("overhead")]
        return {row[1]: int(row[2]) for row in rows}

    def test_what_is_too_much_goes_and_the_rest_stays(self):
        def work():
            slow()
            total = hot()
            slow()
            return total
        recording = self.record(work)
        self.assertEqual(self.result, CALLS)
        kept = recording.count(tiny)
        self.assertTrue(0 < kept < CALLS / 2, kept)
        self.assertEqual(list(self.reported()), ["tiny"])
        self.assertEqual(kept, self.reported()["tiny"])
        self.assertEqual(recording.stats["events_repaired"], 0)
        self.assertEqual(recording.stats["functions_disabled"], 1)
        self.assertEqual((recording.count(slow), recording.count(hot), recording.count(work)),
                         (2, 1, 1))
        self.assertEqual(recording.stats["events_dropped"], 0)

    def test_what_is_within_the_budget_stays(self):
        def work():
            for _ in range(50):
                tiny()
                slow()
            for _ in range(10):
                for _ in range(1000):
                    tiny()
                time.sleep(0.02)
        recording = self.record(work, permille=500)
        self.assertEqual(recording.count(tiny), 10_050)
        self.assertEqual(recording.stats["functions_disabled"], 0)
        self.assertEqual(self.reported(), {})

    def test_without_a_budget_nothing_goes(self):
        recording = self.record(hot, permille=0)
        self.assertEqual(recording.count(tiny), CALLS)

    def test_callees_of_what_went_are_there(self):
        def work():
            return sum(sometimes(n) for n in range(CALLS))
        recording = self.record(work)
        self.assertEqual(self.result, CALLS * (CALLS - 1) // 2)
        self.assertIn("sometimes", self.reported())
        self.assertEqual(recording.count(leaf), CALLS // 1000)
        self.assertIn(recording.all(leaf)[-1].parent.label, ("<genexpr>", "work", "[sum]"))

    def test_c_functions_stay(self):
        def work():
            for _ in range(CALLS):
                len("")
        recording = self.record(work)
        self.assertEqual(recording.count("[len]"), CALLS)
        self.assertEqual(self.reported(), {})

    def test_open_calls_of_what_went(self):
        """Open calls of functions that were switched off end with their caller, and have the flag."""
        recording = self.record(lambda: fib(20))
        self.assertEqual(self.result, 6765)
        self.assertEqual(set(self.reported()), {"fib"})
        recovered = [c for c in recording.calls if RECOVERED in c.flags]
        self.assertEqual({c.label for c in recovered} - {"fib"}, set())
        self.assertEqual(recording.stats["events_repaired"], len(recovered))
        self.assertLess(len(recovered), 25)

    def test_each_tracer_has_its_own(self):
        every = self.make()
        guarded = self.record(hot)
        every.stop()
        recording = every.recording()
        self.assertEqual(recording.count(tiny), CALLS)
        self.assertEqual(recording.stats["functions_disabled"], 0)
        self.assertLess(guarded.count(tiny), CALLS)

    def test_the_next_trace_has_it_again(self):
        self.record(hot)
        recording = self.record(lambda: [tiny() for _ in range(100)])
        self.assertEqual(recording.count(tiny), 100)

    def test_it_stays_off_over_a_restart(self):
        tracer = self.make(host=self.listening, overhead_permille=BUDGET)
        hot()
        tracer.stop()
        first = tracer.recording().count(tiny)
        tracer.restart()
        hot()
        tracer.stop()
        recording = tracer.recording()
        self.assertEqual(recording.count(tiny), first)
        self.assertEqual(recording.count(hot), 2)

    def test_threads(self):
        def work():
            threads = [threading.Thread(target=hot) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        recording = self.record(work)
        self.assertTrue(0 < recording.count(tiny) < 3 * CALLS / 2)
        self.assertEqual(recording.count(hot), 3)
        self.assertEqual(list(self.reported()), ["tiny"])
        self.assertLessEqual(recording.stats["events_repaired"], 3, "one a thread")


if __name__ == "__main__":
    unittest.main()
