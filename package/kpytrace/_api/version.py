"""The version of the installed package."""

from __future__ import annotations


def package_version() -> str:
    import importlib.metadata  # on demand: the import takes longer than the rest of the package

    try:
        return importlib.metadata.version("kpytrace")
    except importlib.metadata.PackageNotFoundError:  # imported from a checkout or a build folder
        return "0+uninstalled"
