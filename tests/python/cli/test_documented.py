"""The commands in README and docs: each names a command and options that its --help lists, so that what a reader
copies works."""

import pathlib
import re
import shlex
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from support import Case, run_python

from kpytrace._cli import commands

ROOT = pathlib.Path(__file__).parents[3]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
FENCE = re.compile(r"^```[^\n]*\n(.*?)^```$", re.M | re.S)
INLINE = re.compile(r"`(kpytrace [a-z][^`]*)`")
OPTION = re.compile(r"(?<![\w-])(--?[a-z][a-z-]*)")
END = {"-m", "-c"}  # of the options of kpytrace run


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


def options_of(words):
    """Returns the options before the program that `kpytrace run` runs, or all of another command."""
    found = []
    for word in words[1:]:
        if words[0] == "run" and (word in END or word.endswith((".py", "SCRIPT", "..."))):
            break
        found += re.findall(r"^--?[a-z][a-z-]*", word)
    return found


class Documented(Case):
    def helps(self, words):
        key = tuple(words)
        if key not in self.known:
            self.known[key] = run_python("-m", "kpytrace", *words, "--help").stdout
        return set(OPTION.findall(self.known[key]))

    def test_the_commands_of_the_documentation(self):
        self.known, count = {}, 0
        for page in PAGES:
            for words in commands_of(page.read_text()):
                if words[0].startswith("-") or not words[0].isalpha() or words[0].isupper():
                    continue  # --version, KPYTRACE
                with self.subTest(page=page.name, command=" ".join(words)):
                    self.assertIn(words[0], commands._COMMANDS)
                    name = words[:2] if words[0] == "et" and len(words) > 1 and words[1].isalpha() else words[:1]
                    self.assertEqual(set(options_of(words)) - self.helps(name), set())
                count += 1
        self.assertGreater(count, 100)


if __name__ == "__main__":
    unittest.main(verbosity=2)
