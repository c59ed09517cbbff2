"""Threads that start and end, and a thousand starts and stops from another thread."""

import support
from support import rounds

# Eight threads that each run one short-lived thread after the other, and one thread that runs all the time.
WORLD = """
import lc, _thread
sys.setswitchinterval(1e-4)
ending, living = False, True
def fresh(i):
    space = {}
    exec(f"def f(x): return x\\nclass C:\\n    def g(self): return f({i})", space)
    space["C"]().g()
def short_life():
    for i in range(20): lc.tick(); len("x"); fresh(i)
def breed():
    while not ending:
        t = threading.Thread(target=short_life); t.start(); t.join()
def live():
    while living and not ending: lc.ticks(25)
everybody = [threading.Thread(target=breed) for _ in range(8)] + [threading.Thread(target=live)]
for t in everybody: t.start()
"""


class StressTest(support.Case):
    def stress(self, body, cycles, limit):
        body = "\n".join("    " + line for line in body.strip("\n").split("\n"))
        body = body.replace("CYCLES", str(cycles))
        self.program(WORLD + "began = time.monotonic()\ntry:\n" + body
                     + "\nfinally:\n    ending = True\nfor t in everybody: t.join()\n"
                     "print('took', time.monotonic() - began)\n", limit=limit)

    def test_cycles_from_python(self):
        self.stress("""
pairs = 0
for i in range(CYCLES):
    tracer = lc.Tracer()
    for _ in range(10): lc.ticks(7 + 18)
    result = tracer.finish(lc.free if i % 2 else lc.held)
    # Every pair of marks, here and in the thread that lives on, holds all of its ticks.
    assert result.least == result.most == 25, (i, result.least, result.most)
    assert result.pairs >= 10 and not result.dropped, (result.pairs, result.dropped)
    pairs += result.pairs
assert pairs > 10 * CYCLES, "the thread that lives through was never seen"
""", rounds(100, 1000), rounds(120, 560))

    def test_cycles_from_c(self):
        self.stress("""
lc.Cycler(CYCLES, 300).wait(500)
""", rounds(100, 1000), rounds(120, 560))

    def test_restarts(self):
        self.stress("""
living = False  # its pairs would have holes: what is between stop and restart
everybody.pop().join()
tracer = lc.Tracer()
for i in range(CYCLES):
    lc.ticks(25)
    tracer.stop(lc.free)
    assert lc.held.lc_restart(tracer.address) == 0
result = tracer.finish()
assert result.least == result.most == 25 and result.pairs >= CYCLES, (result.least, result.most)
""", rounds(50, 300), rounds(120, 560))


if __name__ == "__main__":
    support.main()
