"""The entry of `python -m kpytrace` and of the command `kpytrace`."""

from __future__ import annotations

import os
import sys


def _forget_working_folder() -> None:
    """Removes the working folder, which `python -m` puts into the path: a file there that is named like a module, such as
    json.py, is not imported by the command kpytrace either."""
    try:
        folder = os.getcwd()
    except OSError:  # it is gone
        return
    if sys.path and sys.path[0] in ("", folder):
        del sys.path[0]


def main() -> int:
    from ._cli.commands import main as run

    return run(sys.argv[1:])


if __name__ == "__main__":
    _forget_working_folder()
    sys.exit(main())
