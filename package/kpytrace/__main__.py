"""The entry of `python -m kpytrace` and of the command `kpytrace`."""

from __future__ import annotations

import sys


def main() -> int:
    from ._cli.commands import main as run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
