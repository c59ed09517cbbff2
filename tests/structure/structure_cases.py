"""Small trees that each break one rule of check_structure.py, and trees that break none.

Run by `check_structure.py --self-test`. A case is (its title, {file: text}, a text that the one violation must
contain, or None for no violation).
"""

import pathlib
import tempfile

POINTS = """/* Does a thing.
 * thread: any
 * GIL: not needed
 * ownership: none passes
 * errors: none
 * since: 1.0 */
"""
SLASH = "/"  # so that check_structure.py does not find the paths below in this file

CASES = [
    ("a tree that keeps every rule", {
        "abi/kpt_a.h": '#include <stdint.h>\n#include "kpt_b.h"\n#ifdef __cplusplus\nextern "C" {\n'
                       "#endif\nenum { A = 1 << 0 };\n" + POINTS
                       + "typedef int (*kpt_make_fn)(void *ctx, int (*inner)(void));\n"
                         "typedef struct t {\n    int size; /* (bytes) */\n\n" + POINTS
                       + "    int (*stop)(void *self,\n                int now);\n"
                         "    kpt_make_fn make; /* documented at its type */\n} t;\n"
                         "static inline int help(int x)\n{\n    if (f(x)) { return g(x); }\n"
                         "    return 0;\n}\n" + POINTS
                       + '__attribute__((visibility("default"))) int kpt_entry(void *host);\n'
                         "#define KPT_X(a) \\\n    f(a)\n#ifdef __cplusplus\n}\n#endif\n",
        "abi/kpt_b.h": "typedef void (*kpt_any_fn)(void);\n",
        "abi/impl/kpti.h": '#include "kpt_a.h"\nint undocumented(void);\n',
        "plugin/p.c": '#include "abi/impl/kpti.h"\n#include "noop/noop.h"\n/* #if __linux__ */\n',
        "core/base/platform.h": "#ifdef __x86_64__\n#endif\n",
        "noop/noop.h": '#include "abi/impl/kpti.h"\n',
        "python_tracer/interpreter/cpython.h": "#if PY_VERSION_HEX >= 0x030c0000\n#endif\n",
        "writers/chrome.h": '#include "abi/kpt_a.h"\n',
        "writers/chrome.c": '#include "writers/chrome.h"\n#include "core/base/platform.h"\n',
        "hosts/standalone/h.c": '#include "writers/chrome.h"\n#include "abi/kpt_a.h"\n#include "hosts/standalone/own.h"\n',
        "hosts/standalone/own.h": "",
        "examples/e.c": '#include "kpt_a.h"\n#include <stdio.h>\n',
        "tests/t.c": '#include "writers/chrome.h"\n#include "abi/impl/kpti.h"\n',
        "tests/abi/v1/old.h": "int undocumented(void);\n" * 500,
        "docs/d.md": "https://example.org" + SLASH + "opt/x and $HOME" + SLASH + "work/x\n",
    }, None),
    # (a)
    ("abi knows nobody", {"abi/kpt_a.h": '#include "plugin/size.h"\n', "plugin/size.h": ""},
     "includes plugin/size.h of plugin/"),
    ("not even its private part", {"abi/kpt_a.h": '#include "impl/kpti.h"\n',
                                   "abi/impl/kpti.h": ""}, "of abi/impl/"),
    ("an implementation does not know the plugin",
     {"noop/n.c": '#include "plugin/size.h"\n', "plugin/size.h": ""}, "of plugin/"),
    ("nor another implementation",
     {"noop/n.c": '#include "python_tracer/hooks/hooks.h"\n', "python_tracer/hooks/hooks.h": ""}, "of python_tracer/"),
    ("the plugin does not know writers",
     {"plugin/p.c": '#include "writers/chrome.h"\n', "writers/chrome.h": ""}, "of writers/"),
    ("writers know only abi", {"writers/w.c": '#include "abi/impl/kpti.h"\n', "abi/impl/kpti.h": ""},
     "of abi/impl/"),
    ("a host knows only abi", {"hosts/torch/h.cpp": '#include "plugin/size.h"\n', "plugin/size.h": ""},
     "of plugin/"),
    ("a host does not know another", {"hosts/torch/h.cpp": '#include "hosts/standalone/own.h"\n',
                                      "hosts/standalone/own.h": ""}, "of hosts/standalone/"),
    ("a host that we don't ship has no writers",
     {"hosts/jax/h.c": '#include "writers/chrome.h"\n', "writers/chrome.h": ""}, "of writers/"),
    ("an include has its path from the root", {"writers/a.c": '#include "b.h"\n', "writers/b.h": ""},
     "includes b.h: no file of this path"),
    ("modules form no circle", {"writers/a.h": "", "writers/a.c": '#include "writers/b.h"\n',
                                "writers/b.h": '#include "writers/a.h"\n'},
     "circle of modules: writers/a, writers/b"),
    ("nor do folders", {"writers/x/a.c": '#include "writers/y/b.h"\n', "writers/y/b.h": "",
                        "writers/y/c.c": '#include "writers/x/d.h"\n', "writers/x/d.h": ""},
     "circle of folders: writers/x, writers/y"),
    ("an example knows only the public part",
     {"examples/e.c": "#  include <impl/kpti.h>\n", "abi/impl/kpti.h": ""}, "of abi/impl/"),
    ("sources are in folders of the layout", {"misc/m.c": ""}, "no folder of the layout"),
    # (b)
    ("C is short", {"noop/n.c": "int a;\n" * 401}, "has 401 lines"),
    ("scripts too", {"scripts/s": "#!/bin/sh\n" + ":\n" * 401}, "has 402 lines"),
    # (c)
    ("the platform is asked for in one header", {"plugin/p.c": "#if defined(__aarch64__)\n#endif\n"},
     "asks for the platform"),
    ("also on a continued line", {"noop/n.c": "#if A || \\\n    defined(__x86_64__)\n#endif\n"},
     "asks for the platform"),
    ("the Python version in another", {"python_tracer/hooks.c": "#if PY_VERSION_HEX > 3\n#endif\n"},
     "asks for the Python version"),
    ("one build for all Pythons counts its references",
     {"hosts/standalone/m.c": "PyObject *f(void)\n{\n    Py_RETURN_NONE;\n}\n"}, "use Py_NewRef"),
    ("a descriptor that may be a standard one", {"writers/w.c": "int f(void)\n{\n    return open(p, 0);\n}\n"},
     "use core/base/file_descriptor.h"),
    ("a duplicate as well", {"writers/w.c": "int f(int d)\n{\n    return fcntl(d, F_DUPFD_CLOEXEC, 0);\n}\n"},
     "use core/base/file_descriptor.h"),
    ("what is no system call", {"writers/w.c": "int f(t *x)\n{\n    return x->open(x) + kpti_open(x);\n}\n",
                                "core/base/file_descriptor.c": "int g(void)\n{\n    return open(p, 0);\n}\n"}, None),
    # (d)
    ("a member without a comment", {"abi/kpt_a.h": "struct t {\n    int (*stop)(void);\n};\n"},
     "stop: the comment above lacks thread:, GIL:, ownership:, errors:, since:"),
    ("a type without one point",
     {"abi/kpt_a.h": POINTS.replace(" * GIL: not needed\n", "") + "typedef int (*f_fn)(void);\n"},
     "f_fn: the comment above lacks GIL:"),
    ("a point without an answer",
     {"abi/kpt_a.h": POINTS.replace("errors: none", "errors:") + "int f(void);\n"},
     "f: the comment above lacks errors:"),
    ("a comment that belongs to something else",
     {"abi/kpt_a.h": POINTS + "int f(void);\nvoid *g(void);\n"}, "g: the comment above lacks"),
    ("a comment with a gap below", {"abi/kpt_a.h": POINTS + "\nint f(void);\n"}, "f: the comment"),
    ("a function pointer that returns a pointer",
     {"abi/kpt_a.h": "struct t {\n    int size;\n    void *(*alloc)(void *ctx);\n};\n"}, "alloc:"),
    # (e)
    ("a path of a machine", {"docs/d.md": "see " + SLASH + "work/main\n"}, "path of one machine"),
    ("also in quotes", {"scripts/x.py": 'p = "' + SLASH + 'opt/x"\n'}, "path of one machine"),
    ("and at a line's start", {"docs/d.md": SLASH + "root/x\n"}, "path of one machine"),
    ("white space at an end", {"docs/d.md": "text \n"}, "ends in white space"),
    # (f)
    ("tests that are run", {
        "tests/glob/CMakeLists.txt": "file(GLOB _files CONFIGURE_DEPENDS test_*.py)\n", "tests/glob/test_a.py": "",
        "tests/named/CMakeLists.txt": "add_test(NAME a COMMAND python ${_here}/test_a.py)\n", "tests/named/test_a.py": "",
        "tests/rooms/CMakeLists.txt": "file(GLOB _files CONFIGURE_DEPENDS test_*.py a/test_*.py\n  b/c/test_*.py)\n",
        "tests/rooms/test_a.py": "", "tests/rooms/a/test_a.py": "", "tests/rooms/b/c/test_a.py": "",
        "tests/rooms/b/case.py": "",
        ".ci/run": "step python3 tests/package/test_package.py .\n", "tests/package/test_package.py": "",
    }, None),
    ("a test in no list", {"tests/a/CMakeLists.txt": "add_test(x ${_here}/test_b.py ${_here}/test_c.py) # test_a.py\n",
                           "tests/a/test_a.py": "", "tests/a/test_b.py": ""}, "tests/a/test_a.py:1: is in no list"),
    ("one whose name is the end of another's", {"tests/a/CMakeLists.txt": "add_test(x other_test_a.py)\n",
                                                "tests/a/test_a.py": ""}, "tests/a/test_a.py:1: is in no list"),
    ("one in a folder that no pattern names", {
        "tests/a/CMakeLists.txt": "file(GLOB _files test_*.py b/test_*.py)\n", "tests/a/test_a.py": "",
        "tests/a/b/test_a.py": "", "tests/a/c/test_a.py": ""}, "tests/a/c/test_a.py:1: is in no list"),
    ("one in a folder without a list", {"tests/a/test_a.py": ""}, "is in no list"),
    ("a C++ test in no list", {"tests/a/CMakeLists.txt": "add_executable(t all_test.cc # l_test.cc\n)\n",
                               "tests/a/all_test.cc": "", "tests/a/l_test.cc": ""},
     "tests/a/l_test.cc:1: is in no list"),
    # (g)
    ("imports without a circle", {
        "package/p/__init__.py": "from ._a import one\n\n\ndef f():\n    from . import _b\n",
        "package/p/_a.py": "TYPE_CHECKING = False\nif TYPE_CHECKING:\n    from ._b import Two\none = 1\n",
        "package/p/_b.py": "import p._a\nfrom ._c import x\nfrom .d import e\n",
        "package/p/_c.py": "import os\nfrom a import b\nx = 1\n",
        "package/p/d/__init__.py": "", "package/p/d/e.py": "from .._c import x\n",
    }, None),
    ("modules that import each other",
     {"package/p/__init__.py": "", "package/p/_a.py": "from . import _b\n", "package/p/_b.py": "from ._a import one\n"},
     "is in an import circle: p._a, p._b"),
    ("also inside of functions, and by full names",
     {"package/p/__init__.py": "", "package/p/_a.py": "import p._b\n",
      "package/p/_b.py": "def f():\n    from p._a import one\n"}, "is in an import circle: p._a, p._b"),
    ("a module and its package",
     {"package/p/__init__.py": "from .d.e import x\n", "package/p/d/__init__.py": "",
      "package/p/d/e.py": "def f():\n    from ... import p\n    from .. import name\n"}, "is in an import circle: p, p.d.e"),
    ("a module in C belongs to no circle",
     {"package/kpytrace/__init__.py": "from ._a import x\n", "package/kpytrace/_a.py": "from . import _standalone\n"},
     None),
    ("a full folder", {f"docs/{i}.md": "" for i in range(30)}, None),
    ("one more than that", {f"docs/{i}.md": "" for i in range(31)}, "docs:1: holds 31 files"),
    ("its folders do not count", {f"docs/{i % 2}/{i}.md": "" for i in range(60)}, None),
    ("nor do inputs of fuzzers", {f"tests/native/fuzz/corpus/{i}": "" for i in range(31)}, None),
    ("links of the documentation", {
        "README.md": "[d](docs/d.md#a-b-1), [all](docs/), [far](https://example.org/x)\n<img src=\"docs/p.png\">\n",
        "docs/d.md": "# A `b`\n## [A b](../README.md)\n[up](../README.md) [here](#a-b) `[no](link)`\n```\n# no\n[no](x)\n```\n",
        "docs/p.png": "",
    }, None),
    ("a link to no file", {"docs/d.md": "see [it](gone.md)\n"}, "docs/d.md:1: links to gone.md, which does not exist"),
    ("a picture that is not there", {"README.md": "\n<img src=\"docs/p.png\">\n"}, "README.md:2: links to docs/p.png"),
    ("a heading that is not there", {"README.md": "[x](d.md#there)\n", "d.md": "# Here\n```\n# There\n```\n"},
     "d.md has no heading of that name"),
    ("messages that the documentation quotes", {
        "docs/troubleshooting.md": "| message | why |\n|---|---|\n| `the disk of … is full: make room` | x |\n| `.kpt` | y |\n",
        "package/p/a.py": 'raise OSError(f"the disk of {name} is "\n              f"full: make room")\n',
    }, None),
    ("a message that is not there", {
        "docs/troubleshooting.md": "| message | why |\n|---|---|\n| `the disk of … was full` | x |\n",
        "package/p/a.py": 'raise OSError(f"the disk of {name} is full")\n',
    }, "docs/troubleshooting.md:3: quotes 'was full'"),
    ("a heading of the page itself", {"docs/d.md": "[x](#gone)\n"}, "has no heading of that name"),
]


def run(violations):
    """Prints each case that has the wrong result. Returns 1 if there is any, and 0 otherwise."""
    failures = 0
    for shows, files, expected in CASES:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve()
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            lines, _ = violations(root)
        if expected is None:
            good = not lines
        else:
            good = len(lines) == 1 and expected in lines[0]
        if not good:
            failures += 1
            print(f"FAILED: {shows}: expected {expected or 'nothing'}, got {lines[:3]}")
    print(f"structure: self-test: {len(CASES) - failures} of {len(CASES)} cases")
    return 1 if failures else 0
