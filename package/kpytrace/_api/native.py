"""Finds the installed files of the package, and loads its C part, the module kpytrace._standalone. load() imports
it at the first start; importing the package does not."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

standalone: Any = None  # kpytrace._standalone, once load() has returned


def installed_file(name: str, what: str) -> str:
    """Returns the path of a file of the package. `what` names it in the error if it is missing."""
    # In an editable install these files are not in the folder of the sources. The package's __path__ has both
    # folders.
    for folder in sys.modules[__package__.rpartition(".")[0]].__path__:
        path = os.path.join(os.path.realpath(folder), name)
        if os.path.exists(path):
            return path
    raise FileNotFoundError(f"{what} is not in this installation of kpytrace ({_FOLDER}): "
                            f"run `pip install .` in a checkout")


def plugin_file() -> str:
    """Returns the path of libkpytrace.so. hosts/standalone/module/traceback calls this by name."""
    return installed_file("lib/libkpytrace.so", "the plugin, libkpytrace.so,")


def load() -> str:
    """Imports kpytrace._standalone if that has not been done. Returns the path of the plugin."""
    global standalone
    if standalone is None:
        if sys.flags.ignore_environment:  # see options.from_environment; C code reads these two
            for variable in ("KPYTRACE_CUPTI", "KPYTRACE_VERBOSE"):
                os.environ.pop(variable, None)
        try:
            from .. import _standalone
        except ImportError as error:
            raise ImportError(f"the C part of this kpytrace ({_FOLDER}) can't be loaded: {error}. In a checkout "
                              f"run `pip install .`") from None
        standalone = _standalone
    return plugin_file()
