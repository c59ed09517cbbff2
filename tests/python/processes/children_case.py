"""Helpers of the tests of --children."""

import collections
import textwrap

from support import Case, run_python

POOL = """
    import multiprocessing, sys
    def work(n):
        return sum(range(n))
    if __name__ == "__main__":
        context = multiprocessing.get_context(sys.argv[1])
        with context.Pool(2) as pool:
            print(pool.map(work, range(50)))
        single = context.Process(target=work, args=(100,), name="single")
        single.start()
        single.join()
    """

# A child with a handler of its own for SIGTERM.
HANDLER = """
    import os, signal, sys
    pid = os.fork()
    if not pid:
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
        os.kill(os.getpid(), signal.SIGTERM)
        sys.exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    """

# One that takes it back, and dies of the signal.
HANDLER_BEFORE = """
    import os, signal
    def leaf():
        pass
    pid = os.fork()
    if not pid:
        signal.signal(signal.SIGTERM, lambda *_: None)
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(1000):
            leaf()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGTERM
    """

# One that blocks it, too late: it has come.
BLOCKED_AFTER = """
    import os, signal, time
    for _ in range(10):
        pid = os.fork()
        if not pid:
            os.kill(os.getpid(), signal.SIGTERM)
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
            time.sleep(60)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGTERM
    """


class ChildrenCase(Case):
    def setUp(self):
        super().setUp()
        self.output = self.folder / "out.json"
        self.files = self.folder / "out.children"

    def write_program(self, text):
        (self.folder / "prog.py").write_text(textwrap.dedent(text), encoding="utf-8")

    def run_children(self, text, *arguments, options=(), status=0, output=None):
        self.write_program(text)
        reply = run_python("-m", "kpytrace", "run", "--children", "-o", str(output or self.output), *options,
                           "prog.py", *arguments, cwd=self.folder)
        self.assertEqual(reply.returncode, status, reply.stderr)
        return reply

    def processes(self, path=None):
        """The calls of functions of prog.py by process name."""
        events = self.read_trace(path or self.output)["traceEvents"]
        names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name" and e["ph"] == "M"}
        self.assertEqual(len(names), len({e["pid"] for e in events}))
        found = {name: collections.Counter() for name in names.values()}
        for event in events:
            if event["ph"] == "X" and "prog.py(" in event["name"]:
                found[names[event["pid"]]][event["name"].rpartition(": ")[2]] += 1
        return found
