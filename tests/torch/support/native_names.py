"""What the program of test_native_file.py and the test share."""

import re

ODD = 'a "b" \\ c\n\tü'


def plain(name):
    """Returns the name of a call without what differs from run to run, or between stock and ours by design."""
    return re.sub(r" object at 0x[0-9a-f]+>", " object>", name)
