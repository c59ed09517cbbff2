"""A server that answers up to a thousand requests a second, each on a thread or a greenlet of its own, while it is recorded.
Prints, as JSON, the private bytes of the process over time, the processor time of the idle program while the recording
flushes 100 times, early and at the end, and how many requests were answered.

usage: soak_program.py threads|gevent stream|ring|memory SECONDS OUTPUT      memory: a stream of calls and memory
"""
import json
import os
import pathlib
import sys
import threading
import time

KIND, MODE, SECONDS, OUTPUT = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
if os.environ.get("KPT_GREENLETS"):
    sys.path.append(os.environ["KPT_GREENLETS"])
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "fixtures"))
if KIND == "gevent":
    import gevent.monkey

    gevent.monkey.patch_all()

import socket  # noqa: E402
import socketserver  # noqa: E402

import kpytrace  # noqa: E402
from short_tracks import own_bytes  # noqa: E402

SLICES, RATE, AT_ONCE = 20, 1000, 10
# In a file system a path of a socket may be too long.
ADDRESS = f"\0kpytrace-soak-{os.getpid()}"


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def answer(line):
    question = json.loads(line)
    return json.dumps({"question": question, "answer": fibonacci(5)}).encode() + b"\n"


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(answer(self.rfile.readline()))


def serve_threads():
    class Server(socketserver.ThreadingUnixStreamServer):
        daemon_threads = True  # others are kept in a list
        request_queue_size = 128

    server = Server(ADDRESS, Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def serve_gevent():
    from gevent.server import StreamServer

    def handle(connection, _):
        with connection, connection.makefile("rb") as lines:
            connection.sendall(answer(lines.readline()))

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(ADDRESS)
    listener.listen(128)
    StreamServer(listener, handle).start()


def ask(i):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(ADDRESS)
        connection.sendall(b"%d\n" % i)
        with connection.makefile("rb") as lines:
            assert json.loads(lines.readline()) == {"question": i, "answer": 5}


def run_until(end, done):
    """Asks, in bursts, no more than RATE times a second."""
    while time.monotonic() < end:
        begin = time.monotonic()
        for _ in range(AT_ONCE):
            ask(done)
            done += 1
        time.sleep(max(begin + AT_ONCE / RATE - time.monotonic(), 0))
    return done


def idle_seconds():
    """Returns the least of three: other programs disturb it."""
    def once():
        begin = time.process_time()
        time.sleep(1)
        return time.process_time() - begin
    return min(once() for _ in range(3))


def main():
    options = {"ring": "8MB"} if MODE == "ring" else {"flush_ns": "10ms", "memory": MODE == "memory"}
    sizes, idle, done = [], [], 0
    with kpytrace.trace(OUTPUT, **options) as trace:
        (serve_gevent if KIND == "gevent" else serve_threads)()
        begin = time.monotonic()
        for i in range(1, SLICES + 1):
            done = run_until(begin + SECONDS * i / SLICES, done)
            if i in (2, SLICES):
                idle.append(idle_seconds())
            sizes.append(own_bytes())
    json.dump({"sizes": sizes, "idle": idle, "requests": done, "dropped": trace.summary.dropped,
               "threads": trace.stats()["threads"]}, sys.stdout)


main()
