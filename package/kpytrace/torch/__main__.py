"""The commands `python -m kpytrace.torch build` and `check`."""

from __future__ import annotations

import argparse
import sys

from ._types import TorchHostError


def build(again: bool) -> int:
    from . import _cuda, _shim
    from ._environment import needed_torch

    try:
        torch = needed_torch()
        print(_shim.build(torch, again))
        if _cuda.is_served(torch):
            print(_shim.build(torch, again, _cuda.UNIT))
    except TorchHostError as error:
        print(f"kpytrace: {error}", file=sys.stderr)
        return 1
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m kpytrace.torch",
                                     description="kpytrace as PyTorch's Python tracer")
    commands = parser.add_subparsers(dest="command", required=True)
    builder = commands.add_parser("build", help="compile the shim for this torch, and print its path")
    builder.add_argument("--again", action="store_true", help="compile even if the shim is in the cache")
    commands.add_parser("check", help="check step by step whether kpytrace works in this environment")
    arguments = parser.parse_args()
    if arguments.command == "build":
        return build(arguments.again)
    from ._check import check

    return check()


if __name__ == "__main__":
    sys.exit(main())
