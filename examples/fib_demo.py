"""A small program under kpytrace: recursion, a generator, threads, json, an exception.

usage: python examples/fib_demo.py TRACE.json

Writes the trace, and says what is in it. Open the file in https://ui.perfetto.dev
"""

import collections
import json
import sys
import threading

import kpytrace


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def numbers(count):
    for n in range(count):
        yield {"n": n, "fib": fib(n)}


def load(text):
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return None


def work():
    rows = [load(json.dumps(row)) for row in numbers(12)]
    rows.append(load("this is no JSON"))
    return rows


def main(path):
    workers = [threading.Thread(target=work, name=f"worker {i}") for i in range(2)]
    with kpytrace.trace(path) as trace:
        for thread in workers:
            thread.start()
        work()
        for thread in workers:
            thread.join()

    summary = trace.summary
    print(f"{summary.calls} calls of {summary.functions} functions in {summary.threads} threads, "
          f"{summary.dropped} events dropped")
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    names = collections.Counter(event["name"] for event in events if event["ph"] == "X")
    print("the most frequent:")
    for name, count in names.most_common(5):
        print(f"  {count:6}  {name}")
    print(f"the trace: {summary.path}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
