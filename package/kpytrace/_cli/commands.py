"""Runs a command by its name, prints the help, and reports errors in a line on stderr, with exit status 2 or 1."""

from __future__ import annotations

import sys

from .arguments import Usage

_COMMANDS = ("run", "report", "view", "convert", "info", "top", "explain", "merge", "diff", "table", "memory", "et")

HELP = """\
usage: kpytrace COMMAND ...

Traces every Python call of every thread of a program.

  kpytrace run script.py         runs a program and writes its trace
  kpytrace report FILE           writes a page for the browser: timeline, flame graph, top table
  kpytrace view FILE             shows that page in the browser
  kpytrace convert IN OUT        converts a file to another format
  kpytrace info FILE             describes a file: program, threads, calls, drops
  kpytrace top FILE              lists the functions that took the most time
  kpytrace explain FILE          says what stands out: waits, pauses, gaps, what became slower
  kpytrace merge FILES -o OUT    makes one trace of several processes, or ranks
  kpytrace diff A B              lists the functions, or torch's operators, that became slower or faster
  kpytrace table FILES -o OUT    writes time by rank, step and function or operator as Parquet
  kpytrace memory FILE           lists allocations by line (from `run --memory FILE`)
  kpytrace et COMMAND ...        reads execution traces, as torch's observer writes them

A FILE is a .kpt file, or a trace in Chrome's JSON format (.json, .json.gz), also of torch.profiler or
viztracer. kpytrace COMMAND --help describes a command; kpytrace --version prints the version."""


def _main(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(HELP)
        return 0 if words else 2
    if words[0] in ("-V", "--version"):
        from kpytrace import __version__

        print(f"kpytrace {__version__}")
        return 0
    if words[0] not in _COMMANDS:
        import difflib

        near = difflib.get_close_matches(words[0], _COMMANDS, n=1)
        hint = (f"did you mean `kpytrace {near[0]}`?" if near else
                f"to trace a program, write `kpytrace run {words[0]}`")
        raise Usage(f"unknown command {words[0]!r}: {hint}")
    if words[0] in ("run", "report", "view", "explain", "memory", "et", "merge", "diff", "table", "top"):  # a module each
        import importlib

        status: int = importlib.import_module(f"{__package__}.{words[0]}").main(words[1:])
        return status
    from . import kpt_commands as kpt

    return {"convert": kpt.convert, "info": kpt.info}[words[0]](words[1:])


def _take_any_text() -> None:
    """Makes stdout accept any text. A name of the traced program, or the µ of a time, may have a character that
    the encoding of the output lacks, which must not end the command."""
    if getattr(sys.stdout, "errors", "") == "strict" and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")


def _tell(error: object) -> None:
    """Prints an error, escaped, since its text may include names from the content of a file."""
    from .formatting import shown  # on demand, since `kpytrace run` needs it only for an error

    text = "\n".join(map(shown, str(error).split("\n")))
    print(f"kpytrace: {text}", file=sys.stderr)


def main(words: list[str]) -> int:
    """Runs a command. Returns its exit status."""
    if words[:1] != ["run"]:  # its stdout belongs to the program
        _take_any_text()
    try:
        return _main(words)
    except Usage as error:
        _tell(error)
        return 2
    except BrokenPipeError:  # `kpytrace top x.kpt | head`
        sys.stderr.close()
        return 1
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        _tell(f"{name}{error.strerror or error}")
        return 1
    except (ImportError, ValueError, RuntimeError, MemoryError) as error:
        _tell(error)
        return 1
    except KeyboardInterrupt:
        print("kpytrace: interrupted", file=sys.stderr)
        return 130
