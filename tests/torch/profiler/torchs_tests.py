"""Runs a file of torch's own tests. Run as

    torchs_tests.py KIND FILE OUTPUT

KIND is stock or a mode of kpytrace's; OUTPUT receives {test: outcome}."""

import json
import os
import runpy
import sys
import unittest

KIND, FILE, OUTPUT = sys.argv[1:]


class Outcomes(unittest.TextTestResult):
    """The outcome of each test. The file is written after each, since a test may end the process."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.outcomes = {}

    def note(self, test, outcome):
        self.outcomes.setdefault(test.id().partition(".")[2], outcome)
        with open(OUTPUT, "w") as file:
            json.dump(self.outcomes, file)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note(test, "passed")

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.note(test, "failed")

    def addError(self, test, error):
        super().addError(test, error)
        self.note(test, "failed")

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error:
            self.note(test, "failed")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "skipped")

    def addExpectedFailure(self, test, error):
        super().addExpectedFailure(test, error)
        self.note(test, "passed")


def main():
    import torch.testing._internal.common_utils as common

    def run_tests(*_):
        unittest.main(module="__main__", argv=[FILE], exit=False,
                      testRunner=unittest.TextTestRunner(resultclass=Outcomes, verbosity=1))
    common.run_tests = run_tests
    if KIND != "stock":
        import kpytrace.torch

        kpytrace.torch.install(KIND)
    sys.argv[:] = [FILE]
    sys.path.insert(0, os.path.dirname(FILE))
    runpy.run_path(FILE, run_name="__main__")


main()
