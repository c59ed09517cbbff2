"""Formats times and names for people."""

from __future__ import annotations


def amount(ns: float) -> str:
    """Returns a time with its unit."""
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= factor:
            return f"{ns / factor:.3f} {unit}"
    return f"{ns:.0f} ns"


def shown(name: str) -> str:
    """Returns a name from a program for one line of a terminal. Characters that would end the line, change its
    direction or control the terminal are escaped."""
    if name.isprintable():
        return name
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
