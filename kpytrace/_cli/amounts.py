"""Times as people read them."""

from __future__ import annotations


def amount(ns: float) -> str:
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= factor:
            return f"{ns / factor:.3f} {unit}"
    return f"{ns:.0f} ns"
