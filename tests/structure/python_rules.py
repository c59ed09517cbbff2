"""Which modules of the Python package import each other, and how many files a folder has.

An import inside a function counts like one at the top of a file, since both make one module depend on the other.
An import under `if TYPE_CHECKING:` does not count, because it never runs. Neither does the import of a parent
package that Python adds.
"""

import ast
import posixpath

from include_rules import circles

PACKAGES = "package/"
EXTENSIONS = {"kpytrace._standalone", "kpytrace.torch._exporter"}  # modules in C
MAX_FILES = 30


def module_of(name):
    """Returns the dotted name of a file of the package."""
    dotted = name[len(PACKAGES):-len(".py")].replace("/", ".")
    return dotted.removesuffix(".__init__")


def running_nodes(node):
    """Yields every node of a syntax tree except those that only type checkers read."""
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        children = node.orelse
    else:
        children = list(ast.iter_child_nodes(node))
    for child in children:
        yield child
        yield from running_nodes(child)


def imported_modules(text, module, is_package, modules):
    """Returns the members of MODULES that MODULE, with this source text, imports."""
    for node in running_nodes(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            base = module.split(".")
            if node.level:
                base = base[:len(base) - node.level + is_package]
            else:
                base = []
            base = ".".join(base + [node.module] * bool(node.module))
            for alias in node.names:
                full = f"{base}.{alias.name}"
                if full in modules:
                    yield full
                elif base in modules and full not in EXTENSIONS:
                    yield base


def import_graph(texts):
    """Returns module -> the modules it imports, for all files of the package."""
    files = {module_of(name): name for name in texts if name.startswith(PACKAGES) and name.endswith(".py")}
    return {module: set(imported_modules(texts[name], module, name.endswith("/__init__.py"), files)) - {module}
            for module, name in files.items()}, files


def check_imports(texts):
    """Yields (file, line, message) for each import circle."""
    graph, files = import_graph(texts)
    for circle in circles(graph):
        yield files[circle[0]], 1, f"is in an import circle: {', '.join(circle)}"


def check_folders(names, inputs):
    """Yields (file, line, message) for each folder with more than MAX_FILES files. NAMES are all files of the
    project; those below INPUTS do not count."""
    counts = {}
    for name in names:
        folder = posixpath.dirname(name)
        if not name.startswith(inputs):
            counts[folder] = counts.get(folder, 0) + 1
    for folder, count in sorted(counts.items()):
        if count > MAX_FILES:
            yield folder or ".", 1, f"holds {count} files; split it: a folder has {MAX_FILES} at most"
