"""Parses the arguments of a command by a table. argparse takes longer to import than `kpytrace run` may take."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Usage(Exception):
    """Invalid arguments. The text explains to the user how to correct them."""


class Argument:
    """An option of a command. `value` is the placeholder of its value in the help, and empty for a switch."""

    def __init__(self, name: str, value: str, text: str, short: str = "") -> None:
        self.name, self.value, self.text, self.short = name, value, text, short

    def shown(self) -> str:
        short = f"-{self.short}, " if self.short else ""
        return f"{short}--{self.name}{' ' + self.value if self.value else ''}"


HELP = Argument("help", "", "print this", "h")
QUIET = Argument("quiet", "", "print only the requested output", "q")
RECOVER = Argument("recover", "", "read a damaged file up to the damage")


def _find(known: Iterable[Argument], given: str) -> Argument:
    arguments = list(known)
    for argument in arguments:
        if given in (f"--{argument.name}", f"-{argument.short}"):
            return argument
    import difflib

    near = difflib.get_close_matches(given, [f"--{a.name}" for a in arguments], n=1)
    hint = f"; did you mean {near[0]}?" if near else "; --help lists the options"
    raise Usage(f"unknown option {given}{hint}")


def is_joined(known: Iterable[Argument], word: str) -> bool:
    """Whether WORD is a short option with its value: -oout.json."""
    return len(word) > 2 and word[0] == "-" and word[1:3].isalnum() and any(
        argument.value and argument.short == word[1] for argument in known)


def parse(known: Sequence[Argument], words: Sequence[str], stops: Sequence[str] = (),
          leave_rest: bool = False) -> tuple[dict[str, str], list[str]]:
    """Returns the options by name, and the other words. With leave_rest, parsing ends at the first word that is
    not an option, or at one of `stops`, since the remaining words belong to another program."""
    options: dict[str, str] = {}
    rest: list[str] = []
    i = 0
    while i < len(words):
        word = words[i]
        if is_joined(known, word):
            words = [*words[:i], word[:2], word[2:], *words[i + 1:]]
            word = words[i]
        if word == "--":
            return options, rest + list(words[i + 1:])
        if word in stops or (leave_rest and (not word.startswith("-") or word == "-")):
            return options, list(words[i:])
        i += 1
        if not word.startswith("-") or word == "-":
            rest.append(word)
            continue
        name, equals, value = word.partition("=")
        argument = _find(known, name)
        if argument.value and not equals:
            if i == len(words):
                raise Usage(f"{name} needs a value: {argument.shown()}")
            value, i = words[i], i + 1
        elif equals and not argument.value:
            raise Usage(f"{name} takes no value")
        if argument.name in options and argument.name in ("include", "exclude"):
            value = f"{options[argument.name]},{value}"
        options[argument.name] = value if argument.value else "1"
    return options, rest


def parse_command(words: Sequence[str], known: Sequence[Argument], usage: str,
                  counts: tuple[int, ...]) -> tuple[dict[str, str], list[str]] | None:
    """Calls parse() for a command that takes a number of files in `counts`. Returns None after printing the
    help."""
    options, rest = parse(known, words)
    if "help" in options:
        print(usage + "\n\n" + columns(known))
        return None
    if len(rest) not in counts:
        raise Usage(usage.splitlines()[0])
    return options, rest


def parse_files(words: Sequence[str], known: Sequence[Argument], usage: str,
                hint: str) -> tuple[dict[str, str], list[str]] | None:
    """Calls parse() for a command that writes one output, which must be named, from any number of files."""
    options, paths = parse(known, words)
    if "help" in options:
        print(usage + columns(known))
        return None
    if not paths or "output" not in options:
        raise Usage(hint)
    return options, paths


def row_count(options: dict[str, str], default: int) -> int | None:
    """Returns the value of --count, or None for all rows if the value is 0."""
    given = options.get("count", str(default))
    if not given.isdigit():
        raise Usage(f"--count must be a number, not {given}")
    return int(given) or None


def columns(arguments: Iterable[Argument], width: int = 80) -> str:
    """Returns the options as the columns of a help text."""
    import textwrap

    lines = []
    for argument in arguments:
        text = textwrap.wrap(argument.text, width - 30)
        head = f"  {argument.shown()}"
        if len(head) > 28:
            lines.append(head)
        else:
            lines.append(f"{head:<30}{text.pop(0)}")
        lines += [" " * 30 + part for part in text]
    return "\n".join(lines)
