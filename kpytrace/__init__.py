"""Where the installed plugin and its headers are, for hosts that load it.

    >>> import ctypes, kpytrace
    >>> library = ctypes.CDLL(str(kpytrace.plugin_path()))

The package itself loads nothing: a host opens the plugin through its C entry.
"""

import importlib.metadata
import pathlib

__all__ = ["__version__", "include_dir", "plugin_path"]

try:
    __version__ = importlib.metadata.version("kpytrace")
except importlib.metadata.PackageNotFoundError:  # imported from a checkout that isn't installed
    __version__ = "0+uninstalled"


def _installed(name: str, what: str) -> pathlib.Path:
    # An editable install keeps these files in another folder than the sources; both are in __path__.
    for folder in __path__:
        path = pathlib.Path(folder).resolve() / name
        if path.exists():
            return path
    raise FileNotFoundError(
        f"{what} is not in this installation of kpytrace ({pathlib.Path(__file__).parent}): "
        f"run `pip install .` in a checkout, and import kpytrace from outside of it"
    )


def plugin_path() -> pathlib.Path:
    """The path of libkpytrace.so, to be opened with dlopen."""
    return _installed("lib/libkpytrace.so", "the plugin, libkpytrace.so,")


def include_dir() -> pathlib.Path:
    """The folder of the C headers that a host or another plugin includes (kpt.h)."""
    return _installed("include", "the folder of C headers")
