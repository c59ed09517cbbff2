"""Which file may include which. Sources include by path from the root. Headers in abi/ include each other by name,
and so does an example, since hosts have nothing else.

A module is a .c or .cc file with its header. Neither modules nor folders may form a circle.
"""

import re

# Folder -> the folders that its files may include from, besides itself. The longest matching name decides, so
# abi/impl is not abi. None: may include from all folders.
ABI = ("abi", "abi/impl")
CORE = (*ABI, "core/base", "core/recording", "core/callstacks", "core/memory_log")
ARROWS = {
    "abi": (),
    "abi/impl": ("abi",),
    "core/base": ABI,
    "core/recording": (*ABI, "core/base"),
    "core/callstacks": (*ABI, "core/base", "core/recording"),
    "core/memory_log": (*CORE, "writers"),
    "plugin": (*ABI, "core/base", "core/recording", "noop"),
    "noop": ABI,
    "python_tracer": (*CORE, "writers"),
    "execution_trace": (*ABI, "core/base", "writers"),
    "gpu_tracer": (*ABI, "core/base"),
    "writers": ("abi", "core/base"),
    "imports": (*ABI, "core/base", "core/recording", "writers"),
    "hosts": ("abi",),
    "hosts/standalone": ("abi", "core/base", "writers", "imports"),
    "hosts/torch": ("abi",),
    "hosts/torch/exporter": ("abi", "core/base", "writers", "hosts/torch"),
    "examples": ("abi",),
    "tests": None,
    "bench": None,
}
BY_NAME = ("abi/", "examples/")  # files here include without a path
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">]', re.M)


def folder_of(name):
    """Returns the longest folder of ARROWS that has the file, or None."""
    parts = name.split("/")[:-1]
    for length in range(len(parts), 0, -1):
        if "/".join(parts[:length]) in ARROWS:
            return "/".join(parts[:length])
    return None


def target_of(include, includer, files):
    """Returns the project's file that an include refers to, or None."""
    if include in files:
        return include
    beside = f"{includer.rpartition('/')[0]}/{include}"
    if includer.startswith(BY_NAME):
        return next((name for name in (beside, f"abi/{include}") if name in files), None)
    return None


def check_includes(sources):
    """Yields (file, line, message). SOURCES are the texts of C and C++ by name."""
    names = {name.rpartition("/")[2] for name in sources}
    for name, text in sources.items():
        folder = folder_of(name)
        if folder is None:
            yield name, 1, "is in no folder of the layout; if it belongs there, extend ARROWS"
            continue
        for match in INCLUDE.finditer(text):
            bracket, include = match.groups()
            if bracket == "<" and not include.rpartition("/")[2].startswith("kpt"):
                continue  # an include in angle brackets is ours only with our prefix
            line = text.count("\n", 0, match.start()) + 1
            target = target_of(include, name, sources)
            if target is None:
                if bracket == '"' or include.rpartition("/")[2] in names:
                    yield name, line, f"includes {include}: no file of this path from the root"
                continue
            allowed = ARROWS[folder]
            if allowed is not None and folder_of(target) not in (folder, *allowed):
                known = ", ".join(f"{other}/" for other in allowed) or "nobody"
                yield name, line, f"includes {include} of {folder_of(target)}/; {folder}/ may know {known}"


def circles(graph):
    """Returns the strongly connected parts of a graph (name -> set of names) that have more than one member."""
    found, order, lowest, path = [], {}, {}, []

    def visit(name):
        order[name] = lowest[name] = len(order)
        path.append(name)
        for other in sorted(graph.get(name, ())):
            if other not in order:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in path:
                lowest[name] = min(lowest[name], order[other])
        if lowest[name] == order[name]:
            at = path.index(name)
            if len(path) - at > 1:
                found.append(sorted(path[at:]))
            del path[at:]

    for name in sorted(graph):
        if name not in order:
            visit(name)
    return found


def graphs(sources):
    """Returns the graphs of includes among modules and among folders of the product."""
    modules, folders = {}, {}
    for name, text in sources.items():
        if name.startswith(("tests/", "bench/", "examples/")):
            continue
        for _, include in INCLUDE.findall(text):
            target = target_of(include, name, sources)
            if target is None:
                continue
            for graph, end in ((modules, "."), (folders, "/")):
                source, other = name.rpartition(end)[0], target.rpartition(end)[0]
                if source != other:
                    graph.setdefault(source, set()).add(other)
    return modules, folders


def check_circles(sources):
    for kind, graph in zip(("modules", "folders"), graphs(sources)):
        for circle in circles(graph):
            yield circle[0], 1, f"is in a circle of {kind}: {', '.join(circle)}"
