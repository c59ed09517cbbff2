"""Records an unchanged program: KPYTRACE=1 traces a program from its start to its end.

The value is "1", or words separated by spaces: the name of the output, and options as name=value:

    KPYTRACE="out.json.gz ring=10s exclude=<frozen" python program.py

KPYTRACE_MEMORY records the memory that the program allocates (help(kpytrace.memory) lists the options):

    KPYTRACE_MEMORY="memory.pickle sample_bytes=512kB" python program.py

Where both name one .kpt file, it has both.

`kpytrace run` sets the variables too, with another separator, because names may contain spaces. start() removes
them from the environment, so that programs which this one starts are not recorded into the same file. With
children=1 those programs are recorded, each into its own files (children.py). A program that only starts ranks
keeps the variables for the ranks.
"""

from __future__ import annotations

import os
import sys

from .._api import native, running_traces
from .._api import trace as _trace
from .._api.options import from_environment
from .._api.summary import next_line, print_failure, print_message, shown_path, trace_line  # now: at exit, files may be unreachable
from . import process_info

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from typing import Any, Optional, Union

    from .children import Family

    Kind = Union[type[_Calls], type[_Allocations]]

VARIABLE = "KPYTRACE"
MEMORY_VARIABLE = "KPYTRACE_MEMORY"
SEPARATOR = "\x1f"
_OFF = ("0", "false", "no", "off")
_ON = ("1", "true", "yes", "on")


def pack(output: str, options: dict[str, str], quiet: bool) -> str:
    """Returns the value to which `kpytrace run` sets the variable."""
    words = [f"output={output}", f"quiet={int(quiet)}"]
    return SEPARATOR + SEPARATOR.join(words + [f"{k}={v}" for k, v in options.items()])


def unpack(text: str, default: str) -> Optional[tuple[str, dict[str, str], bool]]:
    """Returns the output, the options, and whether to be quiet; or None if the value switches recording off."""
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


def _is_terminal() -> bool:
    """Whether stderr is a terminal."""
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except Exception:
        return False


class _Calls:
    """The trace of a whole program, or of one process of a family."""

    def __init__(self, output: str, options: dict[str, str], quiet: bool, family: Optional[Family] = None,
                 merges: bool = False) -> None:
        self.quiet, self.output, self.family, self.merges = quiet, output, family, merges
        path = family.new_path() if merges and family and not output.endswith(".kpt") else output
        self.recorded = _trace.Trace(path, options)  # type: ignore[arg-type]
        self.recorded._is_whole = True
        self.announced = family is not None and not merges and not self.recorded._stream
        if family and self.announced:
            family.announce(path)
        self.recorded._is_quiet = quiet
        self.next = "" if quiet else next_line(shown_path(output))  # now, since programs change their working folder
        running_traces.prepare()  # registers the exit function of traces first, so that it runs after ours
        if "memory" in options:
            from .._api import memory

            memory.prepare()  # its hook for forked children runs before follow() starts a new recording

    @staticmethod
    def check(output: str) -> None:
        """Raises ValueError if a family can't write this output."""
        from . import children

        children.check(output)

    def stop(self) -> str:
        """Stops the trace and writes it. Returns the message for the user."""
        bar = None
        if not self.quiet and _is_terminal():
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
            return self.family.merge(self.output) + self.next
        more = self.family.later(self.output) if self.merges and self.family else ""
        return trace_line(summary, self.output) + ("" if summary.noop else more or self.next)


class _Allocations:
    """The memory recording of a whole program, or of one process of a family."""

    def __init__(self, output: str, options: dict[str, str], quiet: bool, family: Optional[Family] = None,
                 merges: bool = False) -> None:
        from .._api import memory

        known = {name: options[name] for name in ("sample_bytes", "max_entries", "max_frames", "aggregate")
                 if name in options}
        if len(known) < len(options):
            raise ValueError(f"unknown option {next(iter(options.keys() - known))!r}; the options are sample_bytes, "
                             f"max_entries, max_frames and aggregate")
        self.quiet, self.output, self.family = quiet, output, family if merges else None
        self.next = "" if quiet else next_line(shown_path(output))
        self.recorded = memory.Memory(output, **known)  # type: ignore[arg-type]
        memory.prepare()  # as in _Calls

    @staticmethod
    def check(output: str) -> None:
        """Raises ValueError if a family can't write this output."""
        from .._api import memory

        memory.check_path(output)

    def stop(self) -> str:
        self.recorded.stop()
        message = f"kpytrace: memory recording: {self.output}"
        if self.family and self.family.files():
            message += f"; {len(self.family.files()):,} children have files of their own: {self.family.folder}"
        return message + self.next


class _Run:
    """One recording of a whole program, from its start to its end. `recording` is None in a process that is not
    recorded but whose forked children are."""

    def __init__(self, kind: Kind, recording: Union[_Calls, _Allocations, None],
                 family: Optional[Family] = None) -> None:
        self.kind, self.recording, self.family, self.pid = kind, recording, family, os.getpid()

    def start(self) -> None:
        import atexit

        from . import process_hooks

        atexit.register(self.finish)  # registered before the program's functions, so it runs after them
        _before_exit(self)
        process_hooks.allow_forks()
        _after_handlers()
        if self.family:
            os.register_at_fork(after_in_child=self.follow)
        if self.recording:
            self.recording.recorded.start()

    def finish(self) -> None:
        """Stops the recording when the program ends. Prints errors, and leaves the program's exit status
        unchanged."""
        if self.pid != os.getpid() or not self.recording or not self.recording.recorded.running:
            return
        try:
            message = self.recording.stop()
        except Exception as error:
            print_failure(self.recording.output, error)
            return
        if not self.recording.quiet:
            print_message(message)

    def follow(self) -> None:
        """Begins a new recording in a forked child, where the parent's recording has ended."""
        from . import process_hooks
        from .children import is_about_to_exec

        assert self.family
        if is_about_to_exec(sys._getframe(1)):
            return
        try:
            process_info.set_forked()
            self.pid = os.getpid()
            self.recording = self.kind(self.family.new_path(), self.family.options, True, self.family)
            self.recording.recorded.start()
            if self.kind is _Calls and "multiprocessing.process" in sys.modules:
                process_hooks.await_name(self.rename)
        except Exception as error:
            print_message(f"kpytrace: process {os.getpid()} is not recorded: {error}")

    def rename(self) -> None:
        """Is called when multiprocessing has set the name of the process."""
        if isinstance(self.recording, _Calls) and self.pid == os.getpid() and self.recording.recorded.running:
            self.recording.recorded._describe_again()


def _named_like(real: Any, ours: Any) -> Any:
    """Sets the name of `ours` to that of `real`, because programs pickle functions by name:
    Process(target=os._exit)."""
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(ours, name, getattr(real, name))
    ours.__wrapped__ = real
    return ours


def _before_exit(run: _Run) -> None:
    """Wraps os._exit, which runs no exit functions, so that the file is written before it."""
    import posix

    real = posix._exit

    def _exit(status: int) -> Any:
        try:
            run.finish()
        finally:
            real(status)

    posix._exit = os._exit = _named_like(real, _exit)


def _after_handlers() -> None:
    """Wraps signal.signal. A program that resets SIGTERM to its default, often to be ended by it, then has our
    handler again, like a program that never set a handler."""
    import _signal  # type: ignore[import-not-found]  # signal calls its functions

    real = _signal.signal

    def signal(signalnum: int, handler: Any, /) -> Any:
        before = real(signalnum, handler)
        if signalnum == _signal.SIGTERM and handler == _signal.SIG_DFL and native.standalone:
            native.standalone.listen()
        return before

    if not hasattr(real, "__wrapped__"):
        _signal.signal = _named_like(real, signal)


def _suffix_of(kind: Kind, output: str) -> str:
    """Returns the suffix of the files of a family whose first process writes OUTPUT."""
    if kind is _Calls:
        return ".kpt"
    return ".tables.json" if output.endswith(".tables.json") else os.path.splitext(output)[1]


def _run_of(kind: Kind, variable: str, output: str, options: dict[str, str], quiet: bool) -> Optional[_Run]:
    """Returns the recording to start, or None if this process is not to be recorded."""
    folder, suffix = options.pop("family", ""), options.pop("suffix", "")
    wants_children = options.pop("children", "0").lower() not in _OFF
    if not folder and not wants_children:
        return _Run(kind, kind(output, options, quiet))
    from . import children

    if folder:
        family = children.Family(folder, options, suffix)
        output, quiet = family.new_path(), True
    else:
        kind.check(output)  # before the files of an earlier run are removed
        family = children.Family.of_output(output, options, _suffix_of(kind, output))
    os.environ[variable] = pack("", family.words(), True)
    process_info.set_family()
    if folder and children.is_tracker():
        return None
    recording = None if folder and children.is_server() else kind(output, options, quiet, family, not folder)
    run = _Run(kind, recording, family)
    if kind is _Calls and folder and children.is_named_later():
        from . import process_hooks

        process_hooks.await_name(run.rename)
    return run


def _start(variable: str, default: str) -> None:
    text = os.environ.pop(variable)
    try:
        wanted = unpack(text, default)
        if wanted is None:
            return
        output, options, quiet = wanted
        named = process_info.expand(output)
        if named is None or ("family" not in options and process_info.is_launcher(sys.orig_argv)):
            os.environ[variable] = text  # for the ranks
            return
        run = _run_of(_Calls if variable == VARIABLE else _Allocations, variable, named, options, quiet)
        if run:
            run.start()
    except Exception as error:
        what = "the program" if variable == VARIABLE else "the program's memory"
        print_message(f"kpytrace: {variable} is set, but {what} is not recorded: {error}")


def join(environment: MutableMapping[str, str]) -> None:
    """Makes one recording of the two where both variables name one file, which then has both parts."""
    calls, memory = (unpack(environment.get(variable, ""), "") for variable in (VARIABLE, MEMORY_VARIABLE))
    if not calls or not memory or not calls[0] or os.path.realpath(calls[0]) != os.path.realpath(memory[0]):
        return
    output, options, quiet = calls
    if not output.endswith(".kpt"):
        raise ValueError(f"calls and memory can be written to one file only if it is a .kpt file, and not to {output}: give "
                         f"that suffix, or different names")
    unknown = memory[1].keys() - {"sample_bytes", "children"}
    if unknown:
        raise ValueError(f"{sorted(unknown)[0]} can't be given where calls and memory are written to one file: give "
                         f"different names")
    sample = memory[1].get("sample_bytes", "0")
    environment[VARIABLE] = pack(output, dict(options, memory="1" if sample == "0" else sample), quiet and memory[2])
    del environment[MEMORY_VARIABLE]


def start() -> None:
    """Is called by _startup. The program continues after any error here."""
    try:
        join(os.environ)
    except ValueError as error:
        del os.environ[MEMORY_VARIABLE]
        print_message(f"kpytrace: {MEMORY_VARIABLE} is set, but the program's memory is not recorded: {error}")
    if MEMORY_VARIABLE in os.environ:
        _start(MEMORY_VARIABLE, f"kpytrace.{os.getpid()}.pickle")
    if VARIABLE in os.environ:
        _start(VARIABLE, from_environment("KPYTRACE_OUTPUT") or f"kpytrace.{os.getpid()}.kpt")
