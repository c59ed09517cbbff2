"""Times and names as people read them."""

from __future__ import annotations


def amount(ns: float) -> str:
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= factor:
            return f"{ns / factor:.3f} {unit}"
    return f"{ns:.0f} ns"


def shown(name: str) -> str:
    """A program's own name on one line of a terminal: what would end the line, turn it round, or command the terminal
    stands there by its number."""
    if name.isprintable():
        return name
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
