"""The recipes of docs/recipes.md. What they rely on is tried without any package; with KPYTRACE_TEST_LONG they are run
with the newest releases of their packages, which are fetched."""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import BACKEND, Case, TAG, clean_environment, run_python

import kpytrace

ROOT = pathlib.Path(__file__).parents[3]
PACKAGE = pathlib.Path(kpytrace.__file__).parents[1]
LONG = os.environ.get("KPYTRACE_TEST_LONG", "0") not in ("", "0")
PACKAGES = ("gunicorn", "uvicorn", "django", "pytest", "pytest-xdist", "nbclient", "ipykernel")
WAIT_S = 60

# A server that forks its workers, and resets their signals before it calls a hook, as gunicorn does.
PREFORK = """
import os, signal, sys, time
import kpytrace
def hook():
    kpytrace.start("worker.json", ring="30s")
def work(n): return sum(range(n))
pid = os.fork()
if not pid:
    signal.signal(signal.SIGUSR2, signal.SIG_DFL)
    hook()
    while not os.path.exists("worker.1.json"):
        work(10)
        time.sleep(.01)
    sys.exit(0)
while not os.path.exists("worker.1.json"):
    time.sleep(.1)
    try:
        os.kill(pid, signal.SIGUSR2) if os.path.exists("ready") else open("ready", "w").close()
    except ProcessLookupError:
        break
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
APP = """
import json
def slow(n):
    return sum(i * i for i in range(n))
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(slow(200)).encode()]
async def rows(n):
    import asyncio
    await asyncio.sleep(0)
    return slow(n)
async def asgi(scope, receive, send):
    if scope["type"] == "http":
        body = str(await rows(100)).encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})
"""
DJANGO = """
import sys
from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import HttpResponse
from django.urls import path
import app, kpytrace
def index(request): return HttpResponse(str(app.slow(100)))
def spans(get_response):
    def middleware(request):
        with kpytrace.span("request", method=request.method, path=request.path):
            return get_response(request)
    return middleware
urlpatterns = [path("", index)]
settings.configure(DEBUG=True, ROOT_URLCONF=__name__, SECRET_KEY="x", ALLOWED_HOSTS=["*"], MIDDLEWARE=["__main__.spans"])
execute_from_command_line(sys.argv)
"""
NOTEBOOK = """
import nbformat, nbclient
notebook = nbformat.v4.new_notebook()
notebook.cells = [nbformat.v4.new_code_cell(text) for text in (
    'import app, kpytrace\\nwith kpytrace.trace("cell.html", this_thread=True):\\n    app.slow(1000)',
    'from IPython.display import IFrame\\nIFrame("cell.html", width="100%", height=600)',
    'with kpytrace.trace("cell.kpt", this_thread=True) as t:\\n    app.slow(1000)\\nt.summary.threads')]
nbclient.NotebookClient(notebook, timeout=60).execute()
print([output["data"]["text/plain"] for cell in notebook.cells for output in cell.outputs])
"""


@unittest.skipUnless(BACKEND.exists(), f"there is no backend for CPython {TAG} beside the plugin")
class WithoutPackages(Case):
    """What the recipes rely on."""

    def test_the_example_of_the_readme(self):
        """The settings are copied for each order, and once with --fixed."""
        for orders, copies, arguments in ((20, 20, []), (20, 1, ["--fixed"])):
            run_python("-m", "kpytrace", "run", "-o", self.folder / "orders.json", "--include", "*/copy.py",
                       ROOT / "examples/orders.py", *arguments, str(orders))
            calls = sum(event["name"].endswith(": deepcopy") for event in self.events("orders.json"))
            self.assertEqual(calls, 182 * copies)

    def test_a_flight_recorder_in_a_forked_worker(self):
        done = subprocess.run([sys.executable, "-c", PREFORK], cwd=self.folder, env=clean_environment(), timeout=WAIT_S,
                              check=False)
        self.assertEqual(done.returncode, 0)
        for name in ("worker.json", "worker.1.json"):
            self.assertIn("work", {event["name"].partition("): ")[2] for event in self.events(name)})

    def events(self, name):
        return json.loads((self.folder / name).read_text())["traceEvents"]

    def test_the_rank_of_a_scheduler(self):
        for variable in ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK"):
            env = {**clean_environment(), variable: "3"}
            subprocess.run([sys.executable, "-m", "kpytrace", "run", "--quiet", "-o", f"{variable}-%r.kpt", "-c", "pass"],
                           cwd=self.folder, env=env, check=True, timeout=WAIT_S)
            self.assertTrue((self.folder / f"{variable}-3.kpt").exists())


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@unittest.skipUnless(LONG and BACKEND.exists(), "fetches packages: KPYTRACE_TEST_LONG=1 runs it")
class WithPackages(Case):
    @classmethod
    def setUpClass(cls):
        cls.venv = ROOT / f"build/recipes/{TAG}"
        python = cls.venv / "bin/python"
        if not (cls.venv / ".complete").exists():
            try:
                subprocess.run([sys.executable, "-m", "venv", "--clear", cls.venv], check=True)
                subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary",
                                ":all:", *PACKAGES], check=True, timeout=280)
            except subprocess.SubprocessError as error:  # no network, or no builds for this Python
                raise unittest.SkipTest(f"the packages can't be fetched: {error}") from None
            (cls.venv / ".complete").touch()
        site = next(cls.venv.glob("lib/python*/site-packages"))
        (site / "kpytrace.pth").write_text((ROOT / "hosts/startup/kpytrace.pth").read_text())
        (site / "kpytrace").unlink(missing_ok=True)
        (site / "kpytrace").symlink_to(PACKAGE / "kpytrace")

    def setUp(self):
        super().setUp()
        (self.folder / "app.py").write_text(APP)
        (self.folder / "manage.py").write_text(DJANGO)

    def start(self, *words, **variables):
        env = {**{name: value for name, value in clean_environment().items() if name != "PYTHONPATH"},
               "PATH": f"{self.venv / 'bin'}:{os.environ['PATH']}", **variables}
        process = subprocess.Popen([self.venv / "bin/python", *map(str, words)], cwd=self.folder, env=env, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def run_to_end(self, *words, status=0):
        process = self.start(*words)
        text = process.communicate(timeout=WAIT_S)[0]
        self.assertEqual(process.returncode, status, text)
        return text

    def serve(self, port, *words, status=0, during=None, **variables):
        """Runs a server, sends it some requests, and ends it by SIGTERM. Returns what it printed."""
        process = self.start(*words, **variables)
        deadline = time.monotonic() + WAIT_S
        for _ in range(8):
            while True:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=WAIT_S) as reply:
                        reply.read()
                    break
                except OSError:
                    if process.poll() is not None or time.monotonic() > deadline:
                        process.kill()
                        self.fail(f"the server does not answer: {process.communicate()[0]}")
                    time.sleep(0.1)
        if during:
            during()
        process.send_signal(signal.SIGTERM)
        text = process.communicate(timeout=WAIT_S)[0]
        self.assertEqual(process.returncode, status, text)
        return text

    def top(self, name, *options):
        return self.run_to_end("-m", "kpytrace", "top", "-n", 0, *options, name)

    def names(self, name):
        text = (self.folder / name).read_text()
        return set(re.findall(r'"name": ?"([^"]*)"', text))

    def test_gunicorn(self):
        port = free_port()
        serve = ("-m", "gunicorn", "-w", "2", "-b", f"127.0.0.1:{port}", "--no-control-socket", "app:application")
        self.assertIn("of 3 processes", self.serve(port, *serve, KPYTRACE="gunicorn.json children=1"))
        self.assertTrue(any("application" in name for name in self.names("gunicorn.json")))
        text = self.serve(port, "-m", "kpytrace", "run", "--children", "-o", "run.json", *serve)
        self.assertIn("of 3 processes", text)

    def test_a_flight_recorder_in_gunicorns_workers(self):
        (self.folder / "gunicorn.conf.py").write_text(
            "import kpytrace\ndef post_worker_init(worker):\n    kpytrace.start('worker.json', ring='30s')\n"
            "    open('pid', 'w').write(str(worker.pid))\n")
        port = free_port()

        def dump():
            os.kill(int((self.folder / "pid").read_text()), signal.SIGUSR2)
            deadline = time.monotonic() + WAIT_S
            while not (self.folder / "worker.1.json").exists() and time.monotonic() < deadline:
                time.sleep(0.05)

        self.serve(port, "-m", "gunicorn", "-b", f"127.0.0.1:{port}", "--no-control-socket", "app:application", during=dump)
        self.assertTrue(any("application" in name for name in self.names("worker.1.json")))
        self.assertTrue((self.folder / "worker.json").exists())

    def test_uvicorn(self):
        port = free_port()
        serve = ("-m", "uvicorn", "--port", port, "app:asgi")
        self.serve(port, "-m", "kpytrace", "run", "-o", "uvicorn.kpt", *serve, status=-signal.SIGTERM)
        self.assertIn("rows", self.top("uvicorn.kpt"))
        self.assertIn("RequestResponseCycle.run_asgi", self.top("uvicorn.kpt", "--tasks"))
        self.run_to_end("-m", "kpytrace", "convert", "uvicorn.kpt", "whole.kpt")
        self.assertNotIn("cut off", self.top("whole.kpt"))
        text = self.serve(port, "-m", "kpytrace", "run", "--children", "-o", "two.json", *serve, "--workers", "2")
        self.assertIn("of 3 processes", text)

    def test_django(self):
        self.run_to_end("-m", "kpytrace", "run", "-o", "check.kpt", "manage.py", "check")
        self.assertIn("execute_from_command_line", self.top("check.kpt"))
        port = free_port()
        self.serve(port, "-m", "kpytrace", "run", "-o", "django.kpt", "manage.py", "runserver", "--noreload", port,
                   status=-signal.SIGTERM)
        self.run_to_end("-m", "kpytrace", "convert", "django.kpt", "django.json")
        self.assertIn("request", self.names("django.json"))

    def test_pytest(self):
        (self.folder / "test_app.py").write_text(
            "import app\ndef test_slow(): assert app.slow(10)\ndef test_fails(): assert not app.slow(10)\n")
        (self.folder / "conftest.py").write_text(
            "import kpytrace, pytest\n@pytest.hookimpl(wrapper=True)\ndef pytest_runtest_call(item):\n"
            "    with kpytrace.span(item.nodeid):\n        return (yield)\n")
        self.run_to_end("-m", "kpytrace", "run", "-o", "tests.json", "-m", "pytest", "-q", "test_app.py", status=1)
        self.assertLessEqual({"test_app.py::test_slow", "test_app.py::test_fails"}, self.names("tests.json"))
        text = self.run_to_end("-m", "kpytrace", "run", "--children", "-o", "all.json", "-m", "pytest", "-q", "-n", 2,
                               "test_app.py", status=1)
        self.assertIn("of 3 processes", text)

    def test_jupyter(self):
        (self.folder / "notebook.py").write_text(NOTEBOOK)
        text = self.run_to_end("notebook.py")
        self.assertIn("IFrame", text)
        self.assertIn("'1'", text)
        self.assertIn(b"<html", (self.folder / "cell.html").read_bytes())
        self.assertIn("slow", self.top("cell.kpt"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
