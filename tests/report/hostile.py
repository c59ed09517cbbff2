"""Names that a trace may have and a page must show: markup, code, JSON, directions of writing, characters that end
lines and strings, and names that are not valid text. The traced program and the tests of its page share them."""

NAMES = [
    "</script><script>window.hacked=1</script>", "<!--<script>window.hacked=2", "<img src=x onerror=window.hacked=3>",
    "javascript:window.hacked=4", "]]><svg onload=window.hacked=5>", "</title></style></textarea><b onclick=hacked>",
    "<base href=http://127.0.0.1:9/><link rel=stylesheet href=http://127.0.0.1:9/css>",
    "red;background:url(http://127.0.0.1:9/bg)", "</style><style>*{display:none}</style>", "&lt;&amp;&#60;&nbsp;",
    "line\u2028separator", "paragraph\u2029separator", "two\nlines", "carriage\rreturn", "tab\tstop", "form\x0cfeed",
    "nul\0inside", "\0", "escape\x1b[31mred", "\x1b]8;;http://127.0.0.1:9/\x1b\\link\x1b]8;;\x1b\\", "bell\x07",
    "back\x08space", "delete\x7f", "next\x85line", "csi\x9b2J", "override\u202egnp.exe", "isolate\u2067left\u2069",
    "zero\u200bwidth\ufeff", "👩\u200d💻", "e\u0301\u0302\u0303", "🐍\U0010ffff", "שלום",
    '{"name":"json","__proto__":{"x":1}}', '["a",1]', '","file",1],[0,"', "null", "__proto__", "constructor", "toString",
    "hasOwnProperty", "${window.hacked=6}", "{{7*7}}", "<%= 8 %>", "%s%n%00", "#hash?query=1&b=2",
    "'single\"double`back\\slash", ".*(a+)+$[", "a(3): b", "no place): at all", " leading and trailing ", "   ", "-1",
]
UNENCODABLE = ["lone\ud800surrogate", "\udcff\udc80 bytes"]
# Characters that are invisible, or change the direction of the text: docs/report.md.
_HIDDEN = {*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200B, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2060, 0x2070),
           0xFEFF}
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def encoded(name):
    """Returns the name in a trace of a function or a file of that name."""
    return name.encode("utf-8", "backslashreplace").decode()


def visible(name):
    """Returns the name as the page shows it."""
    return "".join(_SHORT.get(c, f"\\u{ord(c):04x}") if ord(c) in _HIDDEN else c for c in name)
