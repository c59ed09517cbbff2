"""Zero-touch: KPYTRACE=1 traces a program from its start to its end, without an edit.

A variable is "1", or words with spaces between them: the output's name, and options as name=value:

    KPYTRACE="out.json.gz ring=10s exclude=importlib" python program.py

KPYTRACE_MEMORY does the same for what it allocates (help(kpytrace.memory) has the options):

    KPYTRACE_MEMORY="memory.pickle sample_bytes=512kB" python program.py

`kpytrace run` sets them too, with another separator, as names may have spaces in them. They are taken out of
the environment, so that programs which this one starts are not recorded into the same file.
"""

from __future__ import annotations

import os
import sys

from . import _trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional, Union

VARIABLE = "KPYTRACE"
MEMORY_VARIABLE = "KPYTRACE_MEMORY"
SEPARATOR = "\x1f"
_OFF = ("0", "false", "no", "off")
_ON = ("1", "true", "yes", "on")


def pack(output: str, options: dict[str, str], quiet: bool) -> str:
    """What `kpytrace run` sets the variable to."""
    words = [f"output={output}", f"quiet={int(quiet)}"]
    return SEPARATOR + SEPARATOR.join(words + [f"{k}={v}" for k, v in options.items()])


def unpack(text: str, default: str) -> Optional[tuple[str, dict[str, str], bool]]:
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
    output = options.pop("output", output)
    quiet = options.pop("quiet", "0").lower() not in _OFF
    return output or default, options, quiet


def report(summary: _trace.Summary, output: str) -> str:
    """A trace in a line, for people."""
    if summary.noop:
        return f"kpytrace: nothing was recorded: {summary.noop}"
    lost = f", {summary.dropped:,} events dropped" if summary.dropped else ""
    return (f"kpytrace: {summary.calls:,} calls of {summary.threads:,} "
            f"thread{'s' * (summary.threads != 1)} in {summary.seconds:.3f} s{lost}: {output}")


def _tell(text: str) -> None:
    if sys.stderr is not None:
        print(text, file=sys.stderr, flush=True)


class _Calls:
    """The trace of a whole program."""

    def __init__(self, output: str, options: dict[str, str], quiet: bool) -> None:
        self.quiet, self.output = quiet, output
        self.recorded = _trace.Trace(output, options)  # type: ignore[arg-type]
        _trace._load()  # whose own exit function then finds it ended

    def stop(self) -> str:
        """What there is to say."""
        bar = None
        if not self.quiet and sys.stderr is not None and sys.stderr.isatty():
            from ._cli import progress

            bar = progress.Bar("writing", self.recorded.stats()["events"] // 2)
            self.recorded._progress = bar
        summary = self.recorded.stop()
        if bar:
            bar.close()
        return report(summary, self.output)


class _Allocations:
    """What a whole program allocates."""

    def __init__(self, output: str, options: dict[str, str], quiet: bool) -> None:
        from . import _memory

        known = {name: options.pop(name) for name in ("sample_bytes", "max_entries", "max_frames")
                 if name in options}
        if options:
            raise ValueError(f"there is no option {next(iter(options))!r}: sample_bytes, max_entries and "
                             f"max_frames are known")
        self.quiet, self.output = quiet, output
        self.recorded = _memory.Memory(output, **known)  # type: ignore[arg-type]
        _memory._standalone_of()

    def stop(self) -> str:
        self.recorded.stop()
        return f"kpytrace: what was allocated: {self.output}"


class _Run:
    """What is recorded of a whole program, from its start to its end."""

    def __init__(self, recording: Union[_Calls, _Allocations]) -> None:
        self.recording, self.pid = recording, os.getpid()

    def finish(self) -> None:
        """At the end, once. A program that didn't ask for it ends as it would."""
        if self.pid != os.getpid() or not self.recording.recorded.running:
            return
        try:
            said = self.recording.stop()
        except Exception as error:
            _tell(f"kpytrace: {self.recording.output} could not be written: {error}")
            return
        if not self.recording.quiet:
            _tell(said)


def _before_exit(run: _Run) -> None:
    """os._exit runs no exit functions: the file is written before it."""
    import posix

    real = posix._exit

    def _exit(status: int) -> Any:
        run.finish()
        real(status)

    _exit.__doc__ = real.__doc__
    posix._exit = os._exit = _exit


def _start(variable: str, kind: type[Union[_Calls, _Allocations]], default: str) -> None:
    try:
        wanted = unpack(os.environ.pop(variable), default)
        if wanted is None:
            return
        run = _Run(kind(*wanted))
        import atexit

        atexit.register(run.finish)  # before all others, and so it runs after them
        _before_exit(run)
        run.recording.recorded.start()
    except Exception as error:
        _tell(f"kpytrace: {variable} is set, but the program is not recorded: {error}")


def start() -> None:
    """For the .pth file. A program that didn't ask for it goes on whatever happens."""
    if MEMORY_VARIABLE in os.environ:
        _start(MEMORY_VARIABLE, _Allocations, f"kpytrace.{os.getpid()}.pickle")
    if VARIABLE in os.environ:
        _start(VARIABLE, _Calls,
               os.environ.get("KPYTRACE_OUTPUT") or f"kpytrace.{os.getpid()}.json")
