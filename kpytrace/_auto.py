"""Zero-touch: KPYTRACE=1 traces a program from its start to its end, without an edit.

The variable is "1", or words with spaces between them: the output's name, and options as name=value:

    KPYTRACE="out.json.gz ring=10s exclude=importlib" python program.py

`kpytrace run` sets it too, with another separator, as names may have spaces in them. It is taken out of
the environment, so that programs which this one starts are not traced into the same file.
"""

from __future__ import annotations

import os
import sys

from . import _trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

VARIABLE = "KPYTRACE"
SEPARATOR = "\x1f"
_OFF = ("0", "false", "no", "off")
_ON = ("1", "true", "yes", "on")


def pack(output: str, options: dict[str, str], quiet: bool) -> str:
    """What `kpytrace run` sets the variable to."""
    words = [f"output={output}", f"quiet={int(quiet)}"]
    return SEPARATOR + SEPARATOR.join(words + [f"{k}={v}" for k, v in options.items()])


def unpack(text: str) -> Optional[tuple[str, dict[str, str], bool]]:
    """Output, options, and whether to be quiet; None: the variable says no."""
    words = text.split(SEPARATOR)[1:] if text.startswith(SEPARATOR) else text.split()
    if not words or (len(words) == 1 and words[0].lower() in _OFF):
        return None
    output, options = "", {}
    for word in words:
        name, equals, value = word.partition("=")
        if equals:
            options[name.replace("-", "_")] = value
        elif word.lower() not in _ON:
            output = word
    output = options.pop("output", output) or os.environ.get("KPYTRACE_OUTPUT", "")
    quiet = options.pop("quiet", "0").lower() not in _OFF
    return output or f"kpytrace.{os.getpid()}.json", options, quiet


def report(summary: _trace.Summary, output: str) -> str:
    """A trace in a line, for people."""
    if summary.noop:
        return f"kpytrace: nothing was recorded: {summary.noop}"
    lost = f", {summary.dropped:,} events dropped" if summary.dropped else ""
    return (f"kpytrace: {summary.calls:,} calls of {summary.threads:,} "
            f"thread{'s' * (summary.threads != 1)} in {summary.seconds:.3f} s{lost}: {output}")


class _Run:
    """The trace of a whole program."""

    def __init__(self, output: str, options: dict[str, str], quiet: bool) -> None:
        self.quiet, self.pid = quiet, os.getpid()
        self.trace = _trace.Trace(output, options)  # type: ignore[arg-type]
        self.output = output

    def finish(self) -> None:
        """At the end, once. A program that didn't ask for it ends as it would."""
        if self.pid != os.getpid() or not self.trace.running:
            return
        bar = None
        try:
            if not self.quiet and sys.stderr is not None and sys.stderr.isatty():
                from ._cli import progress

                bar = progress.Bar("writing", self.trace.stats()["events"] // 2)
                self.trace._progress = bar
            summary = self.trace.stop()
            if bar:
                bar.close()
        except Exception as error:
            self.tell(f"kpytrace: the trace could not be written: {error}")
            return
        if not self.quiet:
            self.tell(report(summary, self.output))

    @staticmethod
    def tell(text: str) -> None:
        if sys.stderr is not None:
            print(text, file=sys.stderr, flush=True)


def _before_exit(run: _Run) -> None:
    """os._exit runs no exit functions: the trace is written before it."""
    import posix

    real = posix._exit

    def _exit(status: int) -> Any:
        run.finish()
        real(status)

    _exit.__doc__ = real.__doc__
    posix._exit = os._exit = _exit


def start() -> None:
    """For the .pth file. A program that didn't ask for it goes on whatever happens."""
    try:
        wanted = unpack(os.environ.pop(VARIABLE))
        if wanted is None:
            return
        run = _Run(*wanted)
        import atexit

        _trace._load()  # whose own exit function then finds the trace ended
        atexit.register(run.finish)  # before all others, and so it runs after them
        _before_exit(run)
        run.trace.start()
    except Exception as error:
        _Run.tell(f"kpytrace: {VARIABLE} is set, but the program is not traced: {error}")
