"""The description of a process: its command, its rank, its host, and the name that multiprocessing has set. A
trace's info and the names of outputs contain it."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

# Set by programs that start ranks: torchrun, Open MPI, Slurm, and other MPIs.
_VARIABLES = {
    "rank": ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK"),
    "local_rank": ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "MPI_LOCALRANKID"),
    "world_size": ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", "PMI_SIZE"),
}
# Programs that start ranks and are not ranks themselves.
_LAUNCHERS = ("torchrun", "accelerate", "deepspeed", "torch.distributed.run", "torch.distributed.launch",
              "torch.distributed.launcher")
_MAX_COMMAND = 600  # bytes; the host keeps 1,024 bytes of the whole description

are_children_recorded = False
_forked = False
_name = ""  # set by multiprocessing


def rank_variable(key: str) -> Optional[str]:
    """Returns the rank, local_rank or world_size from the environment, or None."""
    for variable in _VARIABLES[key]:
        value = os.environ.get(variable, "")
        if value.isascii() and value.isdigit():
            return value
    return None


def split(command: list[str]) -> tuple[list[str], list[str]]:
    """Splits a command line of Python into its options and its program: a script, -m or -c, which may be at the
    end of a word (-um), and the arguments."""
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
                i += at + 1 == len(word)  # otherwise the rest of the word is its value
                break
    return command[1:i], command[i:]


def is_launcher(command: list[str]) -> bool:
    """Whether this program only starts other programs, each of which is a rank."""
    _, words = split(command)
    if words[:1] == ["-m"]:
        words = words[1:]
    return bool(words) and os.path.basename(words[0]) in _LAUNCHERS


def absolute(output: str) -> str:
    """Returns the output as a path that expand() converts to the same path from any folder. A % in the name of the
    folder is kept."""
    return os.path.normpath(os.path.join(os.getcwd().replace("%", "%%"), output))


def expand(output: str) -> Optional[str]:
    """Returns the name of the output with %p (process), %r (rank) and %h (host) replaced, and %% replaced by %. A
    name without %r and %p gets the rank, too, because all ranks receive the same name. Returns None if the name
    has %r and this process has no rank."""
    rank = rank_variable("rank")
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
    many = "RANK" in os.environ or rank_variable("world_size") not in (None, "1")
    if rank is None or filled & {"r", "p"} or not many:
        return made
    folder, name = os.path.split(made)
    stem, dot, suffix = name.partition(".")
    return os.path.join(folder, f"{stem}.rank{rank}{dot}{suffix}")


def set_forked() -> None:
    """Is called in a forked child, which has no own name yet."""
    global _forked, _name
    _forked, _name = True, ""


def set_name(name: str) -> None:
    """Is called when multiprocessing has set the name of this process."""
    global _name
    _name = name


def children_seconds() -> float:
    """Returns the processor time of all children that have ended and that this process has waited for."""
    times = os.times()
    return times.children_user + times.children_system


def set_family() -> None:
    """Is called in a process whose children are recorded."""
    global are_children_recorded
    are_children_recorded = True


def describe_missing(options: dict[str, object], before: float) -> bytes:
    """Returns lines about what a trace does not have. BEFORE is what children_seconds() was when it began."""
    threads = b"this_thread=1\n" if options.get("this_thread") else b""
    if are_children_recorded or children_seconds() <= before:
        return threads
    return threads + b"children=1\n"  # the program has started some


def describe() -> bytes:
    """Returns lines for `kpytrace info` and `kpytrace merge`. A later call may return more."""
    command = " ".join(sys.orig_argv).replace("\n", " ").encode("utf-8", "replace")
    lines = {"python": f"{sys.implementation.name} {sys.version.split()[0]}", "host": os.uname().nodename[:64],
             "parent": str(os.getppid())}
    if _name:
        lines["name"] = _name.replace("\n", " ")[:100]
    elif _forked:
        lines["forked"] = "1"
    for key in _VARIABLES:
        value = rank_variable(key)
        if value is not None:
            lines[key] = value[:10]
    text = "".join(f"{key}={value}\n" for key, value in lines.items())
    return text.encode("utf-8", "replace") + b"command=" + command[:_MAX_COMMAND] + b"\n"


def short_command(command: str) -> str:
    """Returns "python worker.py" for a whole command line."""
    words = command.split(" ")
    python = os.path.basename(words[0])
    if python[-2:-1].isdigit():
        python = python.rstrip("t")  # the suffix of free-threaded Pythons: python3.13t
    python = python.rstrip("0123456789.") or "python"
    _, program = split(words)
    if program[:1] == ["-m"]:
        return " ".join([python, *program[:2]])
    return " ".join([python, *map(os.path.basename, program[:1])])


def title(info: dict[str, str]) -> str:
    """Returns the title of a process in a trace of several."""
    name = info.get("name") or short_command(info.get("command", ""))
    if info.get("forked"):
        name += " (forked)"
    if "rank" not in info:
        return name
    return f"rank {info['rank']}" + (f": {name}" if "name" in info or "forked" in info else "")
