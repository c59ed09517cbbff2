"""Zero-touch: KPYTRACE=1 traces a program from its start to its end, without an edit.

A variable is "1", or words with spaces between them: the output's name, and options as name=value:

    KPYTRACE="out.json.gz ring=10s exclude=importlib" python program.py

KPYTRACE_MEMORY does the same for what it allocates (help(kpytrace.memory) has the options):

    KPYTRACE_MEMORY="memory.pickle sample_bytes=512kB" python program.py

`kpytrace run` sets them too, with another separator, as names may have spaces in them. They are taken out of
the environment, so that programs which this one starts are not recorded into the same file; but with children=1 those
are, each into a file of its own (children), of both kinds, and a program that only starts ranks leaves the variable to them.
"""

from __future__ import annotations

import os
import sys

from .._api import options as _options
from .._api import trace as _trace
from . import process_info as _process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional, Union

    from .children import Family

    Kind = Union[type[_Calls], type[_Allocations]]

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
    if summary.kernels:
        lost += f", {summary.kernels:,} GPU kernel{'s' * (summary.kernels != 1)}"
    if summary.gpu_dropped:
        lost += f", {summary.gpu_dropped:,} GPU events dropped"
    return (f"kpytrace: {summary.calls:,} calls of {summary.threads:,} "
            f"thread{'s' * (summary.threads != 1)} in {summary.seconds:.3f} s{lost}: {output}")


def tell(text: str) -> None:
    """For who listens: the program may have closed stderr, or put anything in its place."""
    try:
        if sys.stderr is not None:
            print(text, file=sys.stderr, flush=True)
    except Exception:
        pass


def tell_failure(output: Optional[str], error: Exception) -> None:
    """At the end of a program, which ends as it would."""
    tell(f"kpytrace: {output} could not be written: {error}")


def _is_seen() -> bool:
    """Whether stderr is a terminal."""
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except Exception:
        return False


class _Calls:
    """The trace of a whole program; with a family, of one of its processes."""

    def __init__(self, output: str, options: dict[str, str], quiet: bool, family: Optional[Family] = None,
                 merges: bool = False) -> None:
        self.quiet, self.output, self.family, self.merges = quiet, output, family, merges
        path = family.new_path() if merges and family and not output.endswith(".kpt") else output
        self.recorded = _trace.Trace(path, options)  # type: ignore[arg-type]
        self.recorded._is_whole = True
        self.announced = family is not None and not merges and not self.recorded._stream
        if family and self.announced:
            family.announce(path)
        self.recorded._told_no_gpu = quiet
        _trace._load()  # whose own exit function then finds it ended

    @staticmethod
    def check(output: str) -> None:
        """Refuses what can't be that of a family."""
        from . import children as _family

        _family.check(output)

    def stop(self) -> str:
        """What there is to say."""
        bar = None
        if not self.quiet and _is_seen():
            from .._cli import progress

            bar = progress.Bar("writing", self.recorded.stats()["events"] // 2)
            self.recorded._progress = bar
        self.recorded._describe_again()
        summary = self.recorded.stop()
        if self.family and self.announced:
            self.family.retract(self.output)
        if bar:
            bar.close()
        if self.merges and self.family and summary.path != self.output:
            return self.family.merge(self.output)
        return report(summary, self.output) + (self.family.later(self.output) if self.merges and self.family else "")


class _Allocations:
    """What a whole program allocates; with a family, one of its processes."""

    def __init__(self, output: str, options: dict[str, str], quiet: bool, family: Optional[Family] = None,
                 merges: bool = False) -> None:
        from .._api import memory as _memory

        known = {name: options[name] for name in ("sample_bytes", "max_entries", "max_frames") if name in options}
        if len(known) < len(options):
            raise ValueError(f"there is no option {next(iter(options.keys() - known))!r}: sample_bytes, max_entries "
                             f"and max_frames are known")
        self.quiet, self.output, self.family = quiet, output, family if merges else None
        self.recorded = _memory.Memory(output, **known)  # type: ignore[arg-type]
        _memory._standalone_of()

    @staticmethod
    def check(output: str) -> None:
        """Refuses what can't be that of a family."""
        from .._api import memory as _memory

        _memory._check_path(output)

    def stop(self) -> str:
        self.recorded.stop()
        said = f"kpytrace: what was allocated: {self.output}"
        if self.family and self.family.files():
            said += f"; {len(self.family.files()):,} children have files of their own: {self.family.folder}"
        return said


class _Run:
    """What is recorded of a whole program, from its start to its end; None: nothing, but of what it forks."""

    def __init__(self, kind: Kind, recording: Union[_Calls, _Allocations, None],
                 family: Optional[Family] = None) -> None:
        self.kind, self.recording, self.family, self.pid = kind, recording, family, os.getpid()

    def start(self) -> None:
        import atexit

        atexit.register(self.finish)  # before all others, and so it runs after them
        _before_exit(self)
        _process.allow_forks()
        _after_handlers()
        if self.family:
            os.register_at_fork(after_in_child=self.follow)
        if self.recording:
            self.recording.recorded.start()

    def finish(self) -> None:
        """At the end, once. A program that didn't ask for it ends as it would."""
        if self.pid != os.getpid() or not self.recording or not self.recording.recorded.running:
            return
        try:
            said = self.recording.stop()
        except Exception as error:
            tell_failure(self.recording.output, error)
            return
        if not self.recording.quiet:
            tell(said)

    def follow(self) -> None:
        """In the child of a fork: its parent's recording is dead here, and one of its own begins."""
        from .children import is_about_to_exec

        assert self.family
        if is_about_to_exec(sys._getframe(1)):
            return
        try:
            _process.forked()
            self.pid = os.getpid()
            self.recording = self.kind(self.family.new_path(), self.family.options, True, self.family)
            self.recording.recorded.start()
            if self.kind is _Calls and "multiprocessing.process" in sys.modules:
                _process.await_name(self.rename)
        except Exception as error:
            tell(f"kpytrace: process {os.getpid()} is not recorded: {error}")

    def rename(self) -> None:
        """The process has a name now."""
        if isinstance(self.recording, _Calls) and self.pid == os.getpid() and self.recording.recorded.running:
            self.recording.recorded._describe_again()


def _named_like(real: Any, ours: Any) -> Any:
    """Programs pickle functions by name: multiprocessing.Process(target=os._exit)."""
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(ours, name, getattr(real, name))
    ours.__wrapped__ = real
    return ours


def _before_exit(run: _Run) -> None:
    """os._exit runs no exit functions: the file is written before it."""
    import posix

    real = posix._exit

    def _exit(status: int) -> Any:
        try:
            run.finish()
        finally:
            real(status)

    posix._exit = os._exit = _named_like(real, _exit)


def _after_handlers() -> None:
    """A program that takes back a handler of SIGTERM, often to die of the signal then, is as one that has had none."""
    import _signal  # type: ignore[import-not-found]  # what signal calls

    real = _signal.signal

    def signal(signalnum: int, handler: Any, /) -> Any:
        before = real(signalnum, handler)
        if signalnum == _signal.SIGTERM and handler == _signal.SIG_DFL and _trace._standalone:
            _trace._standalone.listen()
        return before

    if not hasattr(real, "__wrapped__"):
        _signal.signal = _named_like(real, signal)


def _suffix_of(kind: Kind, output: str) -> str:
    """What the files of a family end with, whose first process writes OUTPUT."""
    if kind is _Calls:
        return ".kpt"
    return ".tables.json" if output.endswith(".tables.json") else os.path.splitext(output)[1]


def _run_of(kind: Kind, variable: str, output: str, options: dict[str, str], quiet: bool) -> Optional[_Run]:
    """None: this process is not to be recorded."""
    folder, suffix = options.pop("family", ""), options.pop("suffix", "")
    wants_children = options.pop("children", "0").lower() not in _OFF
    if not folder and not wants_children:
        return _Run(kind, kind(output, options, quiet))
    from . import children as _family

    if folder:
        family = _family.Family(folder, options, suffix)
        output, quiet = family.new_path(), True
    else:
        kind.check(output)  # before older files go
        family = _family.Family.of_output(output, options, _suffix_of(kind, output))
    os.environ[variable] = pack("", family.words(), True)
    if folder and _family.is_tracker():
        return None
    recording = None if folder and _family.is_server() else kind(output, options, quiet, family, not folder)
    run = _Run(kind, recording, family)
    if kind is _Calls and folder and _family.is_named_later():
        _process.await_name(run.rename)
    return run


def _start(variable: str, default: str) -> None:
    text = os.environ.pop(variable)
    try:
        wanted = unpack(text, default)
        if wanted is None:
            return
        output, options, quiet = wanted
        named = _process.expand(output)
        if named is None or ("family" not in options and _process.is_launcher(sys.orig_argv)):
            os.environ[variable] = text  # for the ranks
            return
        run = _run_of(_Calls if variable == VARIABLE else _Allocations, variable, named, options, quiet)
        if run:
            run.start()
    except Exception as error:
        what = "the program" if variable == VARIABLE else "the program's memory"
        tell(f"kpytrace: {variable} is set, but {what} is not recorded: {error}")


def start() -> None:
    """For the .pth file. A program that didn't ask for it goes on whatever happens."""
    if MEMORY_VARIABLE in os.environ:
        _start(MEMORY_VARIABLE, f"kpytrace.{os.getpid()}.pickle")
    if VARIABLE in os.environ:
        _start(VARIABLE, _options.from_environment("KPYTRACE_OUTPUT") or f"kpytrace.{os.getpid()}.json")
