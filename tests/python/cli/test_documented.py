"""The commands in README and docs: each names a command and options that its --help lists, so that what a reader
copies works."""

import pathlib
import re
import shlex
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import Case, run_python

ROOT = pathlib.Path(__file__).parents[3]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
FENCE = re.compile(r"^```[^\n]*\n(.*?)^```$", re.M | re.S)
INLINE = re.compile(r"`(kpytrace [a-z][^`]*)`")
# In the text of --help: any option; and one that takes a value, with its short form.
OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")
VALUED = re.compile(r"^  (?:(-[a-z]), )?(--[a-z][a-z-]*) [A-Z]", re.M)
COMMAND = re.compile(r"^  kpytrace (\w+)", re.M)


def commands_of(text):
    """Yields the command lines of a page, as lists of words after `kpytrace`."""
    blocks = FENCE.findall(text)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    for line in lines + INLINE.findall(FENCE.sub("", text)):
        line = re.sub(r"^(\w+=(\"[^\"]*\"|\S*) )+", "", line.strip())
        if line.startswith("kpytrace "):
            try:
                yield shlex.split(line, comments=True)[1:]
            except ValueError:  # a line that goes on
                yield line.split()[1:]


def options_of(words, values):
    """Returns the options of a command. VALUES are those that take a value. The options of `run` end at its program."""
    found, rest = [], iter(words[1:])
    for word in rest:
        if not re.match("--?[a-z]", word):
            if words[0] == "run":
                break
            continue
        option = word.partition("=")[0] if word.startswith("--") else word[:2]
        if words[0] == "run" and option in ("-m", "-c"):
            break
        found.append(option)
        if option in values and word == option:
            next(rest, None)
    return set(found)


class Documented(Case):
    def help(self, words):
        """Returns the options of a command, and those of them that take a value."""
        if words not in self.known:
            text = run_python("-m", "kpytrace", *words, "--help").stdout
            self.known[words] = set(OPTION.findall(text)), {name for names in VALUED.findall(text) for name in names if name}
        return self.known[words]

    def test_the_commands_of_the_documentation(self):
        self.known, count = {}, 0
        commands = set(COMMAND.findall(run_python("-m", "kpytrace", "--help").stdout))
        for page in PAGES:
            for words in commands_of(page.read_text()):
                if words[0].startswith("-") or not words[0].isalpha() or words[0].isupper():
                    continue  # --version, COMMAND
                with self.subTest(page=page.name, command=" ".join(words)):
                    self.assertIn(words[0], commands)
                    names = tuple(words[:2] if words[0] == "et" and len(words) > 1 and words[1].isalpha() else words[:1])
                    known, valued = self.help(names)
                    self.assertEqual(options_of(words, valued) - known, set())
                count += 1
        self.assertGreater(count, 100)


if __name__ == "__main__":
    unittest.main(verbosity=2)
