"""The rule of messages: docs/troubleshooting.md quotes messages of the product, so each of them must be in its sources."""

import re

PAGE = "docs/troubleshooting.md"
PRODUCT = ("package/", "hosts/", "plugin/", "python_tracer/", "gpu_tracer/", "writers/", "core/", "execution_trace/")
ROW = re.compile(r"^\| (.*?) \| ", re.M)
QUOTED = re.compile(r"`([^`]+)`")
# Literals that the compiler joins: "a" "b" of C, f"a" "b" of Python, also over lines.
JOINT = re.compile(r'"\s*f?"')
OF_THE_SYSTEM = {"Permission denied"}


def check_messages(texts):
    """Each fixed part of a quoted message, between `…`, is in a literal of one file."""
    page = texts.get(PAGE)
    if page is None:
        return
    sources = [JOINT.sub("", text).replace('\\"', '"') for name, text in texts.items()
               if name.startswith(PRODUCT) and name.endswith((".py", ".c", ".cc", ".h", ".js"))]
    for row in ROW.finditer(page):
        if not row[1].startswith("`") or row[1].startswith("`."):
            continue
        message = QUOTED.match(row[1])[1]
        parts = [part.strip(" :;,()") for part in message.split("…")]
        parts = [part for part in parts if len(part) > 3 and part not in OF_THE_SYSTEM]
        for part in parts:
            if not any(part in source for source in sources):
                yield PAGE, page.count("\n", 0, row.start()) + 1, f"quotes {part!r}, which no source has"
