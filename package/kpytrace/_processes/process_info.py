"""What a process is called: its command, its rank, its host, and the name that multiprocessing gave it. It goes
into a trace's info, and into the names of outputs. And what is to be done at its end, and in its children."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Optional

# By who starts ranks: torchrun, Open MPI, Slurm, and other MPIs.
_VARIABLES = {
    "rank": ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK"),
    "local_rank": ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "MPI_LOCALRANKID"),
    "world_size": ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", "PMI_SIZE"),
}
# Programs that start ranks and are none themselves.
_LAUNCHERS = ("torchrun", "accelerate", "deepspeed", "torch.distributed.run", "torch.distributed.launch",
              "torch.distributed.launcher")
_MOST_COMMAND = 600  # bytes; the host keeps a thousand of all this

_watches_forks = False
_fork_filter: Any = None  # the last one that suppressed Python's warning of threads
_forked = False
_named = ""  # by multiprocessing


def of_ranks(key: str) -> Optional[str]:
    """The rank, local_rank or world_size that the environment has; None: none."""
    for variable in _VARIABLES[key]:
        value = os.environ.get(variable, "")
        if value.isascii() and value.isdigit():
            return value
    return None


def split(command: list[str]) -> tuple[list[str], list[str]]:
    """A command of Python's as its options and its program: a script, -m or -c, which may end a word (-um), and
    what follows."""
    i = 1
    while i < len(command) and command[i].startswith("-") and command[i] != "-":
        word = command[i]
        i += 1
        if word == "--":
            return command[1:i - 1], command[i:]
        if word.startswith("--"):
            i += word == "--check-hash-based-pycs"
            continue
        for at, letter in enumerate(word[1:], 1):
            if letter in "mc":
                options = command[1:i - 1] + [word[:at]] * (at > 1)
                return options, [f"-{letter}", *filter(None, [word[at + 1:]]), *command[i:]]
            if letter in "WX":
                i += at + 1 == len(word)  # else its value is the rest of the word
                break
    return command[1:i], command[i:]


def is_launcher(command: list[str]) -> bool:
    """Whether this program only starts others, each of which is a rank."""
    _, words = split(command)
    if words[:1] == ["-m"]:
        words = words[1:]
    return bool(words) and os.path.basename(words[0]) in _LAUNCHERS


def absolute(output: str) -> str:
    """The name as a path that expand() turns into the same one from any folder: the folder's own % stay."""
    return os.path.normpath(os.path.join(os.getcwd().replace("%", "%%"), output))


def expand(output: str) -> Optional[str]:
    """The output's name with %p (process), %r (rank) and %h (host) filled in, and % for %%. A rank goes into a name
    that has no place for it, too, since ranks are given the same name. None: %r is asked for, and this is no rank."""
    rank = of_ranks("rank")
    values = {"p": str(os.getpid()), "r": rank, "h": os.uname().nodename}
    filled = set()
    first, *parts = output.split("%")
    made = first
    while parts:
        part = parts.pop(0)
        key = part[:1]
        if not part and parts:  # "%%"
            made += "%" + parts.pop(0)
        elif key not in values:
            made += "%" + part
        elif (value := values[key]) is None:
            return None
        else:
            made += value + part[1:]
            filled.add(key)
    many = "RANK" in os.environ or of_ranks("world_size") not in (None, "1")
    if rank is None or filled & {"r", "p"} or not many:
        return made
    folder, name = os.path.split(made)
    stem, dot, suffix = name.partition(".")
    return os.path.join(folder, f"{stem}.rank{rank}{dot}{suffix}")


def watch(stop: Callable[[], None], forget_in_child: Callable[[], None]) -> None:
    """From now on `stop` runs when the process ends, and `forget_in_child` in each child of a fork."""
    import atexit

    if sys.flags.ignore_environment:  # see options.from_environment; C code reads these
        for variable in ("KPYTRACE_CUPTI", "KPYTRACE_VERBOSE"):
            os.environ.pop(variable, None)
    atexit.register(stop)
    os.register_at_fork(after_in_child=forget_in_child)


def stop_last(stop: Callable[[], object], output: Optional[str]) -> None:
    """At exit, where nobody catches what can't be written."""
    try:
        stop()
    except Exception as error:
        from .autostart import tell_failure

        tell_failure(output, error)


def _are_other_threads_ours() -> bool:
    """Whether there are other threads than the program's one: those that flush and listen."""
    ours = False
    for tid in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{tid}/comm", encoding="utf-8", errors="replace") as file:
                name = file.read()
        except OSError:  # it has ended
            continue
        if tid != str(os.getpid()):  # the first one has the program's name, which may be this
            if name != "kpytrace\n":
                return False
            ours = True
    return ours


def _before_fork() -> None:
    """Python (3.12 and later) warns of a fork where there are several threads. A filter suppresses that while the
    others are ours, and is removed when they are not. It is one that `warnings` made, of a pattern: libraries read,
    compare and pickle the filters, and give them to their workers."""
    global _fork_filter
    import warnings

    try:
        get: Any = getattr(warnings, "_get_filters", lambda: warnings.filters)  # 3.14 and later: of the context
        if not _are_other_threads_ours():
            while _fork_filter in get():
                get().remove(_fork_filter)
        elif get()[:1] != [_fork_filter]:  # a new filter has Python show once more what it has shown
            warnings.filterwarnings("ignore", r".*use of fork(pty)?\(\) may lead to deadlocks", DeprecationWarning)
            _fork_filter = get()[0]
    except OSError:  # there is no /proc
        pass


def allow_forks() -> None:
    """The threads that write a trace are none of the program's: Python is not to warn of them."""
    global _watches_forks
    if sys.version_info >= (3, 12) and not _watches_forks:
        _watches_forks = True
        os.register_at_fork(before=_before_fork)


def forked() -> None:
    """In the child of a fork, before anybody gave it a name of its own."""
    global _forked, _named
    _forked, _named = True, ""


def await_name(told: Callable[[], None]) -> None:
    """Has `told` run once multiprocessing has given this process a name, which it does after processes began: who is
    killed is to have a name, too. The hooks that it has itself are for forked processes only."""
    from multiprocessing.process import BaseProcess

    real = BaseProcess._bootstrap  # type: ignore[attr-defined]

    def _bootstrap(self: Any, *args: Any, **more: Any) -> Any:
        global _named
        BaseProcess._bootstrap = real  # type: ignore[attr-defined]
        _named = str(self.name)
        told()
        return real(self, *args, **more)

    if real.__module__ != __name__:
        BaseProcess._bootstrap = _bootstrap  # type: ignore[attr-defined]


def describe() -> bytes:
    """Lines for `kpytrace info`, and for who merges traces. What is known grows while the program runs."""
    command = " ".join(sys.orig_argv).replace("\n", " ").encode("utf-8", "replace")
    lines = {"python": f"{sys.implementation.name} {sys.version.split()[0]}", "host": os.uname().nodename[:64],
             "parent": str(os.getppid())}
    if _named:
        lines["name"] = _named.replace("\n", " ")[:100]
    elif _forked:
        lines["forked"] = "1"
    for key in _VARIABLES:
        value = of_ranks(key)
        if value is not None:
            lines[key] = value[:10]
    text = "".join(f"{key}={value}\n" for key, value in lines.items())
    return text.encode("utf-8", "replace") + b"command=" + command[:_MOST_COMMAND] + b"\n"


def short_command(command: str) -> str:
    """ "python worker.py" of a whole command line."""
    words = command.split(" ")
    python = os.path.basename(words[0])
    if python[-2:-1].isdigit():
        python = python.rstrip("t")  # of free-threaded Pythons: python3.13t
    python = python.rstrip("0123456789.") or "python"
    _, program = split(words)
    if program[:1] == ["-m"]:
        return " ".join([python, *program[:2]])
    return " ".join([python, *map(os.path.basename, program[:1])])


def title(info: dict[str, str]) -> str:
    """What a process is called in a trace of several."""
    name = info.get("name") or short_command(info.get("command", ""))
    if info.get("forked"):
        name += " (forked)"
    if "rank" not in info:
        return name
    return f"rank {info['rank']}" + (f": {name}" if "name" in info or "forked" in info else "")
