"""The sections of a report page (docs/report.md): reads those that the C writer makes, adds lines of source files, and
redacts paths, the user and the host. A section is held in memory while it is changed."""

from __future__ import annotations

import base64
import gzip
import html
import json
import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, Optional

_SECTION = re.compile(rb"<script ([^>]*)>([^<]*)</script>\n?")
_ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')
_MAX_LINES = 400  # of a function
_MAX_SOURCE_BYTES = 4 << 20  # of a file
_LIBRARY = re.compile(r"^.*/(?:site-packages|dist-packages|python3\.\d+t?|(?=kpytrace/_))/?")
_HOME = re.compile(r"^/(?:home|Users)/([^/]+)/")
# At least two components, so that a division is none.
_PATH = re.compile(r"(?<![\w./<])/[^/\s\"'\\:;,()<>]+(?:/[^/\s\"'\\:;,()<>]+)+/?")


def begin(about: dict[str, str]) -> bytes:
    """Returns the beginning of a section's element, with what describes its trace."""
    attributes = "".join(f'data-{key}="{html.escape(value)}" ' for key, value in about.items() if value)
    return b"<script " + attributes.encode("utf-8", "replace")


def section(kind: str, data: bytes, about: Optional[dict[str, str]] = None) -> bytes:
    """Returns a section to append to a page. It is base64, so that no data in it can end its element."""
    packed = base64.b64encode(gzip.compress(data, 6, mtime=0))
    head = f'type="text/plain" class="section" data-kind="{kind}" data-pack="gzip">'
    return begin(about or {}) + head.encode() + packed + b"</script>\n"


def sections(text: bytes) -> Iterator[tuple[str, bytes]]:
    """Yields the kind and the content of each section."""
    for found in _SECTION.finditer(text):
        attributes = dict(_ATTRIBUTE.findall(found[1].decode()))
        yield attributes["data-kind"], gzip.decompress(base64.b64decode(found[2]))


def _json_at(data: bytes) -> int:
    """Returns where the JSON of a trace begins: after blocks, each with its size and its thread, and a 0."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while size := varint():
        varint()
        at += size
    return at


class Content:
    """What a section has as JSON, and the events before it."""

    def __init__(self, kind: str, data: bytes) -> None:
        at = _json_at(data) if kind == "trace" else 0
        self.kind, self.events = kind, data[:at]
        self.json: dict[str, Any] = json.loads(data[at:])

    def data(self) -> bytes:
        return self.events + json.dumps(self.json, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")

    def files(self) -> set[str]:
        """Returns the files of functions."""
        if self.kind == "trace":
            return {file for _, _, file, _ in self.json["names"] if file}
        return {file for _, file, *_ in self.json.get("symbols", ()) if file}


# --- source lines ---


def _ends(text: str) -> dict[int, int]:
    """Returns the last line of each function, class and lambda by its first line, as code objects count: of a
    decorated function, that is the line of its first decorator."""
    import ast

    ends: dict[int, int] = {}
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.GeneratorExp, ast.ListComp,
             ast.SetComp, ast.DictComp)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, kinds):
            first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
            ends[first] = max(ends.get(first, 0), node.end_lineno or first)
    return ends


def _functions(path: str, lines: Iterable[int]) -> list[tuple[int, list[str]]]:
    """Returns the text of the functions of a file that begin at `lines`. A file that can't be read, or is no Python,
    has none."""
    import tokenize

    try:
        if os.path.getsize(path) > _MAX_SOURCE_BYTES:
            return []
        with tokenize.open(path) as file:
            text = file.read()
        ends = _ends(text)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    whole = text.expandtabs(4).split("\n")
    found = []
    for line in sorted(set(lines)):
        end = ends.get(line, len(whole) if line <= 1 else 0)  # a module begins at 0 or 1
        if part := whole[max(line, 1) - 1:min(end, line + _MAX_LINES)]:
            found.append((line, part))
    return found


def source_section(traces: Iterable[Content], redaction: Optional[Redaction]) -> bytes:
    """Returns a section with the lines of all functions of traces, from the files as they are now."""
    wanted: dict[str, set[int]] = {}
    last_ns = 0
    for content in traces:
        for _, _, file, line in content.json["names"]:
            if os.path.isabs(file):
                wanted.setdefault(file, set()).add(line)
        last_ns = max(last_ns, int(content.json["first_ns"]) + content.json["end"])
    files = []
    for file, lines in sorted(wanted.items()):
        if functions := _functions(file, lines):
            is_changed = os.stat(file).st_mtime_ns > last_ns
            if redaction:
                functions = [(line, [redaction.text(text) for text in part]) for line, part in functions]
            files.append([redaction.file(file) if redaction else file, is_changed, functions])
    return section("source", json.dumps({"files": files}).encode())


# --- redaction ---


class Redaction:
    """Replaces absolute paths by what is below the folder that all files share, or below the library, else by their
    last two components; and the names of the user and of the host by `user` and `host`."""

    def __init__(self, files: Iterable[str], hosts: Iterable[str]) -> None:
        import getpass

        absolute = [file for file in files if file.startswith("/")]
        own = [os.path.dirname(file) for file in absolute if not _LIBRARY.match(file)]
        root = os.path.commonpath(own) if own else "/"
        self._root = root if root.count("/") > 1 else None  # what is below / or /home is still a path of this machine
        words = {match[1]: "user" for file in absolute if (match := _HOME.match(file))}
        try:
            user = getpass.getuser()
        except (KeyError, OSError):
            user = ""
        if user and user != "root":  # the name of everybody's administrator is a common word
            words[user] = "user"
        words.update({host: "host" for host in (*hosts, os.uname().nodename) if host})
        self._words = words
        self._word = re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, sorted(words, key=len, reverse=True))) + r")(?!\w)")

    def _replace_words(self, text: str) -> str:
        return self._word.sub(lambda found: self._words[found[0]], text) if self._words else text

    def file(self, path: str) -> str:
        """Returns the name of a file without what is above the project or the library."""
        if not path.startswith("/"):
            return path
        short = _LIBRARY.sub("", path)
        if short == path and self._root and path.startswith(self._root + "/"):
            short = path[len(self._root) + 1:]
        elif short == path:
            short = "/".join(path.split("/")[-2:]).lstrip("/")
        return self._replace_words(short)

    def text(self, text: str) -> str:
        return self._replace_words(_PATH.sub(lambda found: self.file(found[0].rstrip("/")), text))

    def _name(self, text: str, file: str) -> str:
        """Returns the name of a function. It begins with its file, whatever characters that has."""
        if file and text.startswith(file):
            return self.file(file) + text[len(file):]
        return _PATH.sub(lambda found: self.file(found[0]), text)

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._value(one) for one in value]
        if isinstance(value, dict):
            return {self.text(key): self._value(one) for key, one in value.items()}
        return value

    def apply(self, content: Content) -> None:
        """Redacts all texts of a section."""
        names, symbols = content.json.pop("names", None), content.json.pop("symbols", None)
        content.json = self._value(content.json)
        if names is not None:
            content.json["names"] = [[number, self._name(text, file), self.file(file), line] for number, text, file, line in names]
            content.json.update(name="recording", process="python")
        if symbols is not None:
            content.json["symbols"] = [[self._name(name, file), self.file(file), *rest] for name, file, *rest in symbols]
