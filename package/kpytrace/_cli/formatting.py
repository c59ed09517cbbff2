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


def backward_of(function: str) -> str:
    """Returns what launched work of autograd, whose forward operator FUNCTION called; "" if that is not known."""
    return f"backward of {function or 'an operator that is not in the recording'}"


def print_head(what: str) -> None:
    """Prints the head of a table of calls by WHAT."""
    print(f"{'calls':>14}  {'own':>11}  {'total':>11}  {'per call':>11}  {'longest':>11}  {what}")


def print_row(calls: int, own_ns: int, total_ns: int, max_ns: int, title: str) -> None:
    """Prints a row of it. A row with the rest of a cut call may have no call."""
    print(f"{calls:>14,}  {amount(own_ns):>11}  {amount(total_ns):>11}  {amount(total_ns / max(calls, 1)):>11}  "
          f"{amount(max_ns):>11}  {title}")
