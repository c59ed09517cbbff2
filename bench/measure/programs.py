"""The programs that tracers are timed on. Each is a function of the number of calls that it makes. The
functions that it calls are in another "file", so that filters can distinguish caller and callee."""

CALLER = "<bench caller>"
CALLEE = "<bench callee>"

CALLEES = """
def leaf():
    pass

def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

class Thing:
    def method(self):
        pass

def resumed(n):
    for i in range(n):
        yield i
"""

# Each defines program(n), which makes n calls; n is a multiple of FIB_CALLS.
FIB_CALLS = 21891  # of fib(20)
CALLERS = {
    "py_call": "def program(n):\n    for _ in range(n):\n        leaf()\n",
    "c_call": "def program(n):\n    for _ in range(n):\n        len('')\n",
    "fib": f"def program(n):\n    for _ in range(n // {FIB_CALLS}):\n        fib(20)\n",
    "py_method": "def program(n):\n    thing = Thing()\n    for _ in range(n):\n        thing.method()\n",
    "c_method": "def program(n):\n    items = []\n    for _ in range(n):\n        items.append(0)\n",
    "resume": "def program(n):\n    for _ in resumed(n):\n        pass\n",
}


def make(name):
    """Returns a fresh copy of a program, with code objects that no other thread or tracer has seen."""
    space = {"__name__": "bench_program"}
    exec(compile(CALLEES, CALLEE, "exec"), space)
    exec(compile(CALLERS[name], CALLER, "exec"), space)
    return space["program"]
