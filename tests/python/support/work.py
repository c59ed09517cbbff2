"""Many calls of a small function, in the test itself and, as WORK, in a program of its own."""

WORK = """
import sys
def leaf(n):
    return n + 1
def work(n):
    for i in range(n):
        leaf(i)
"""


def leaf(n):
    return n + 1


def work(n):
    for i in range(n):
        leaf(i)
