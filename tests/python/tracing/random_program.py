"""Random programs, written as Python source: nested calls, recursion, generators, coroutines, async generators,
exceptions raised and caught at any depth, threads, C functions that call back. Each program ends, and does the
same in every run.

    source = RandomProgram(seed).source()    defines main()
"""

import random

HEAD = """
import functools, operator, threading

class Odd(Exception):
    pass

class Context:
    def __enter__(self):
        return self
    def __exit__(self, kind, error, where):
        return kind is Odd

class Thing:
    def __init__(self, value):
        self.value = value
    def __lt__(self, other):
        return self.value < other.value
    def __len__(self):
        return 3
    def __getattr__(self, name):
        raise AttributeError(name)
    @property
    def double(self):
        return self.value * 2

def step(state):
    state[0] += 1
    if state[0] > LIMIT:
        raise Odd("enough")
    return state[0]

def drive(coroutine):
    try:
        while True:
            coroutine.send(None)
    except StopIteration:
        pass

"""

# The statements of a body, of one or more lines: {f} is another function, {g} a generator, {n} a number.
STATEMENTS = [
    "{f}(state, depth + 1)",
    "{f}(state, depth + 1)",
    "x = len('abc') + abs(-{n})",
    "[].append({n})",
    "x = sorted([Thing(3), Thing({n}), Thing(2)])[0].double",
    "x = max([1, 2, {n}], key=lambda v: -v)",
    "x = hasattr(Thing(1), 'missing')",
    "x = len(Thing(1))",
    "x = '-'.join(str(i) for i in range(2))",
    "x = functools.reduce(lambda a, b: a + b, [1, 2, {n}])",
    "x = sum(map(operator.neg, [1, {n}]))",
    "x = list(map(lambda v: v + 1, range(2)))",
    "x = {{k: k for k in 'ab'}}.get('a')",
    "raise Odd('from here')",
    "raise KeyError({n})",
    "x = {{}}['missing']",
    "x = int('no number')",
    "try:\n    {f}(state, depth + 1)\nexcept (KeyError, ValueError):\n    x = len('caught')",
    "try:\n    {f}(state, depth + 1)\nfinally:\n    x = abs(-1)",
    "try:\n    raise Odd\nexcept Odd:\n    {f}(state, depth + 1)",
    "with Context():\n    {f}(state, depth + 1)",
    "for x in {g}(state, depth + 1):\n    if x > 2:\n        break",
    "x = list({g}(state, depth + 1))",
    "gen = {g}(state, depth + 1)\nnext(gen, None)\ngen.close()",
    "gen = {g}(state, depth + 1)\nnext(gen, None)\ntry:\n    gen.throw(KeyError(1))\n"
    "except (KeyError, StopIteration):\n    x = len('thrown')",
    "drive({c}(state, depth + 1))",
    "if depth < 3 + {n}:\n    {own}(state, depth + 1)",
]
YIELDS = ["yield {n}", "yield len('y')", "yield from {g}(state, depth + 1)",
          "try:\n    yield {n}\nexcept KeyError:\n    x = abs(-2)\n    yield 0",
          "try:\n    yield {n}\nfinally:\n    x = len('final')"]
AWAITS = ["await {c}(state, depth + 1)", "x = len('w')", "await Pause()",
          "async for x in stream(state):\n    await Pause()",
          "x = [y async for y in stream(state) if y > {n}]",
          "async with Both():\n    await {c}(state, depth + 1)"]
PAUSE = """
class Pause:
    def __await__(self):
        yield

class Both:
    async def __aenter__(self):
        await Pause()
    async def __aexit__(self, kind, error, where):
        return kind is KeyError

async def stream(state):
    for x in range(3):
        step(state)
        await Pause()
        yield x

"""
THREAD = """
def in_thread_{i}():
    try:
        {f}([0], 0)
    except Exception:
        pass

"""


class RandomProgram:
    """One program, which SEED determines."""

    def __init__(self, seed, threads=True):
        self.random = random.Random(seed)
        self.functions = [f"f{i}" for i in range(self.random.randint(2, 6))]
        self.generators = [f"g{i}" for i in range(self.random.randint(1, 3))]
        self.coroutines = [f"c{i}" for i in range(self.random.randint(1, 2))]
        self.threads = self.random.randint(1, 3) if threads and self.random.random() < 0.3 else 0

    def _statement(self, templates, own):
        pick = self.random.choice
        return pick(templates).format(f=pick(self.functions), g=pick(self.generators),
                                      c=pick(self.coroutines), n=self.random.randint(0, 5),
                                      own=own)

    def _function(self, name, templates, keyword="def", first=()):
        lines = [f"{keyword} {name}(state, depth):", "    step(state)", "    if depth > 12:",
                 "        return"]
        statements = [*first] + [self._statement(templates, name)
                                 for _ in range(self.random.randint(1, 4))]
        for statement in statements:
            lines += ["    " + line for line in statement.split("\n")]
        return "\n".join(lines) + "\n\n"

    def source(self):
        parts = [f"LIMIT = {self.random.choice([20, 60, 150])}\n", HEAD, PAUSE]
        parts += [self._function(f, STATEMENTS) for f in self.functions]
        for g in self.generators:
            parts.append(self._function(g, STATEMENTS[:8] + YIELDS * 3, first=["yield 1"]))
        for c in self.coroutines:
            plain = [s.replace("{own}(state", "len('' if state") for s in STATEMENTS[:12]]
            parts.append(self._function(c, plain + AWAITS * 3, "async def"))
        for i in range(self.threads):
            parts.append(THREAD.format(i=i, f=self.random.choice(self.functions)))
        parts.append("def main():\n    try:\n        f0([0], 0)\n    except Exception:\n"
                     "        pass\n")
        for i in range(self.threads):
            parts.append(f"    thread_{i} = threading.Thread(target=in_thread_{i}, "
                         f"name='random {i}')\n    thread_{i}.start()\n")
        for i in range(self.threads):
            parts.append(f"    thread_{i}.join()\n")
        return "".join(parts)
