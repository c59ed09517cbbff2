"""Out of memory: the Nth allocation fails, for every N, and then every allocation from N on. The program
continues, drops are counted, and nothing leaks."""

import support
from support import rounds

WORK = """
import lc
def deep(n): return deep(n - 1) if n else 0
def work():
    "Some 20 chunks' worth of events."
    for i in range(1500): deep(50)
    lc.ticks(100)
    return 100
"""


class MemoryTest(support.Case):
    def run_work(self, text, limit=120):
        self.program(WORK + "\n".join(line[12:] for line in text.split("\n")), limit=limit)

    def test_each_allocation_fails_once(self):
        self.run_work("""
            blocks = lc.held.lc_live_blocks()
            lc.held.lc_fail_allocs(0, 0)
            tracer = lc.Tracer(); work(); tracer.finish()
            needed = lc.held.lc_allocs()
            assert needed > 10, needed
            refused = dropped = 0
            for n in range(1, needed + 1, %d):
                lc.held.lc_fail_allocs(lc.c_uint64(n), lc.c_uint64(n))
                try:
                    tracer = lc.Tracer()
                except lc.Refused as e:
                    assert "memory" in str(e), e
                    refused += 1
                    continue
                assert work() == 100
                tracer.stop()
                lc.held.lc_fail_allocs(0, 0)
                dropped += tracer.deliver().dropped > 0
                tracer.destroy()
                assert lc.held.lc_live_blocks() == blocks, (n, lc.held.lc_live_blocks(), blocks)
            assert refused and dropped, (refused, dropped)
        """ % rounds(2, 1))

    def test_every_allocation_fails_from_the_nth_on(self):
        self.run_work("""
            blocks = lc.held.lc_live_blocks()
            dropped = 0
            for n in range(1, 30, %d):
                lc.held.lc_fail_allocs(lc.c_uint64(n), lc.c_uint64(1 << 62))
                try:
                    tracer = lc.Tracer()
                except lc.Refused:
                    continue
                assert work() == 100
                tracer.stop()
                lc.held.lc_fail_allocs(0, 0)
                result = tracer.deliver()
                dropped += result.dropped > 0
                tracer.destroy()
                assert lc.held.lc_live_blocks() == blocks
            assert dropped
        """ % rounds(3, 1))

    def test_delivery_without_memory(self):
        self.run_work("""
            import ctypes
            tracer = lc.Tracer()
            work()
            tracer.stop()
            whole = tracer.deliver().activities
            lc.held.lc_fail_allocs(0, 0)
            tracer.deliver()
            needed = lc.held.lc_allocs()
            for n in range(1, needed + 1):
                result = lc.Result()
                lc.held.lc_fail_allocs(lc.c_uint64(n), lc.c_uint64(n))
                status = lc.held.lc_deliver(tracer.address, ctypes.byref(result))
                lc.held.lc_fail_allocs(0, 0)
                assert status == -6 or result.check().activities == whole, (n, status)
            assert tracer.deliver().activities == whole
            tracer.destroy()
        """)

    def test_budgets_in_many_threads(self):
        self.run_work("""
            for kind in ({"max_bytes": 1 << 17}, {"ring_bytes": 1 << 17}):
                tracer = lc.Tracer(**kind)
                threads = [threading.Thread(target=work) for _ in range(4)]
                for t in threads: t.start()
                for t in threads: t.join()
                result = tracer.finish()
                assert result.dropped > 0, kind
        """)


if __name__ == "__main__":
    support.main()
