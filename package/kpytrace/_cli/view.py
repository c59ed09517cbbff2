"""kpytrace view: shows a trace in the browser, from a server that only this machine can reach."""

from __future__ import annotations

import http.server
import io
import os
import secrets
import sys
import tempfile

from .arguments import HELP, QUIET, Argument, Usage, parse_command
from .kpt_file import KptFile
from .report import INPUTS, make

_PERFETTO = "https://ui.perfetto.dev"
_PERFETTO_PORT = 9001  # the only local port from which Perfetto's content security policy allows fetches

_USAGE = """\
usage: kpytrace view [OPTION]... FILE...

Shows the page of `kpytrace report`, or an existing report (.html), in the browser, until Ctrl-C. Each
FILE is a .kpt file, or a trace in Chrome's JSON format (.json, .json.gz), also of another tool. The
server listens only to this machine, at an address that can't be guessed."""


class _Server(http.server.ThreadingHTTPServer):
    """Serves one file at one address."""

    daemon_threads = True

    def __init__(self, port: int, name: str, content: bytes, kind: str, origin: str = "") -> None:
        self.path = f"/{secrets.token_urlsafe(16)}/{name}"
        self.content, self.kind, self.origin = content, kind, origin
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{self.path}"

    @property
    def hosts(self) -> tuple[str, str]:
        port = self.server_address[1]
        return f"127.0.0.1:{port}", f"localhost:{port}"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server

    def _answer(self, status: int, content: bytes = b"", kind: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        if self.server.origin and self.headers.get("Origin") == self.server.origin:
            self.send_header("Access-Control-Allow-Origin", self.server.origin)
            self.send_header("Access-Control-Allow-Private-Network", "true")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _serve(self) -> None:
        # DNS rebinding: another site may resolve its own name to this address, and would then have the same
        # origin.
        if self.headers.get("Host") not in self.server.hosts:
            self._answer(421, b"wrong host\n")
        elif not secrets.compare_digest(self.path.encode(), self.server.path.encode()):
            self._answer(404, b"not found\n")
        elif self.command == "OPTIONS":
            self._answer(204)
        else:
            self._answer(200, self.server.content, self.server.kind)

    do_GET = do_HEAD = do_OPTIONS = _serve

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing, since the terminal belongs to the user."""


def _report(files: list[str], options: dict[str, str], port: int) -> _Server:
    if len(files) == 1 and files[0].endswith(".html"):
        with open(files[0], "rb") as file:
            content = file.read()
    else:
        with tempfile.TemporaryDirectory(prefix="kpytrace-") as folder:
            page = io.BytesIO()
            make(files, options, folder, page)
            content = page.getvalue()
    return _Server(port, "report.html", content, "text/html; charset=utf-8")


def _perfetto(files: list[str], options: dict[str, str]) -> _Server:
    if len(files) != 1:
        raise Usage("--perfetto shows one trace: give one file")
    path, name = files[0], os.path.basename(files[0])
    with tempfile.TemporaryDirectory(prefix="kpytrace-") as folder:
        if path.endswith(".kpt"):
            file = KptFile(path, options)
            path, name = os.path.join(folder, "trace.pftrace"), "trace.pftrace"
            file.write(path)
        with open(path, "rb") as trace:
            content = trace.read()
    return _Server(_PERFETTO_PORT, name, content, "application/octet-stream", _PERFETTO)


def _port(options: dict[str, str]) -> int:
    given = options.get("port", "0")
    if not given.isdigit() or int(given) > 65535:
        raise Usage(f"--port must be a number up to 65535, not {given}")
    if "perfetto" in options and "port" in options:
        raise Usage(f"--perfetto needs port {_PERFETTO_PORT}: {_PERFETTO} fetches from no other port")
    return int(given)


def main(words: list[str]) -> int:
    known = (Argument("port", "N", "the port to serve on (default: any that is free)", "p"),
             Argument("no-browser", "", "only print the address"),
             Argument("perfetto", "", f"show the trace in {_PERFETTO}, which fetches it from this machine; a "
                      "network is needed"),
             *INPUTS, QUIET, HELP)
    parsed = parse_command(words, known, _USAGE, tuple(range(1, 1000)))
    if parsed is None:
        return 0
    options, files = parsed
    port = _port(options)
    if "perfetto" in options:
        server = _perfetto(files, options)
        address = f"{_PERFETTO}/#!/?url={server.address}"
    else:
        server = _report(files, options, port)
        address = server.address
    with server:
        print(address, flush=True)
        if "no-browser" not in options:
            import webbrowser

            webbrowser.open(address)
        if "quiet" not in options:
            print("kpytrace: press Ctrl-C to stop the server", file=sys.stderr)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print(file=sys.stderr)
    return 0
