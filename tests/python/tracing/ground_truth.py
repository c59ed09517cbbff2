"""The calls of a program according to the interpreter itself, recorded in Python with sys.setprofile, in the form
that support.Call.labels returns."""

import re
import sys
import threading

_BUILTIN = re.compile(r"<built-in (?:function|method) (.+?)(?: of (.+) object at 0x[0-9a-f]+)?>\Z",
                      re.S)


def _c_label(function):
    name, owner = _BUILTIN.match(repr(function)).groups()
    if owner == "module":
        owner = None
    return f"[{owner}.{name}]" if owner else f"[{name}]"


class Truth:
    """The calls of each thread, by the thread's name: (depth, label) in pre-order."""

    def __init__(self):
        self.threads = {}
        self._stacks = {}

    def _event(self, frame, event, arg):
        thread = threading._active.get(threading.get_ident())
        if thread is None:  # the thread is ending: current_thread() would make a dummy for it
            return
        name = thread.name
        labels, stack = self.threads.setdefault(name, []), self._stacks.setdefault(name, [])
        label = _c_label(arg) if event.startswith("c_") else frame.f_code.co_name
        if event in ("call", "c_call"):
            labels.append((len(stack), label))
            stack.append(label)
        elif label in stack:  # otherwise the call was open before the start
            while stack.pop() != label:
                pass

    def record(self, work):
        """Records WORK in this thread and the threads that it starts. Returns its result."""
        before = threading._profile_hook
        threading.setprofile(self._event)
        sys.setprofile(self._event)
        try:
            return work()
        finally:
            sys.setprofile(None)
            threading.setprofile(before)


def below(labels, root):
    """Returns the part of LABELS from the first call of ROOT on, with ROOT at depth 0, or None if there is no such
    call."""
    for at, (depth, label) in enumerate(labels):
        if label == root:
            end = at + 1
            while end < len(labels) and labels[end][0] > depth:
                end += 1
            return [(d - depth, text) for d, text in labels[at:end]]
    return None


def pruned(labels, wanted):
    """Returns the part of LABELS that remains if only the calls for which WANTED returns true are recorded. WANTED
    receives the label, the number of Python calls around the call, and whether its caller, the Python function
    that calls it, is recorded."""
    kept, stack = [], []
    for depth, label in labels:
        del stack[depth:]
        levels, shown, caller = stack[-1] if stack else (0, 0, True)
        is_python = not label.startswith("[")
        keep = wanted(label, levels, caller)
        if keep:
            kept.append((shown, label))
        stack.append((levels + is_python, shown + keep, keep if is_python else caller))
    return kept
