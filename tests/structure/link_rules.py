"""The rule of links: every relative link in README, CONTRIBUTING, CHANGELOG and docs leads to a file of the tree, and
every anchor to a heading of it."""

import posixpath
import re

PAGE = re.compile(r"[^/]+\.md|(?:docs|abi)/.+\.md")
FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.M | re.S)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^)\s]+)\)|\b(?:src|srcset|href)=\"([^\"]+)\"")
HEADING = re.compile(r"^#{1,6} +(.+?)[ \t#]*$", re.M)
OUTSIDE = re.compile(r"[a-z][a-z0-9+.-]*:|//")


def blank(pattern, text):
    """Returns the text with spaces for all that matches, so that offsets and lines stay."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def anchors(text):
    """Returns the anchors of a page's headings, as GitHub makes them."""
    found, counts = set(), {}
    for heading in HEADING.findall(FENCE.sub("", text)):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        number = counts.get(name, 0)
        counts[name] = number + 1
        found.add(f"{name}-{number}" if number else name)
    return found


def check_links(names, texts):
    """NAMES are all files of the tree, TEXTS the content of those that are text."""
    files = set(names)
    folders = {posixpath.dirname(name) for name in names}
    for name in filter(PAGE.fullmatch, texts):
        text = blank(CODE, blank(FENCE, texts[name]))
        for match in LINK.finditer(text):
            link = match[1] or match[2]
            if OUTSIDE.match(link):
                continue
            path, _, anchor = link.partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            line = text.count("\n", 0, match.start()) + 1
            if target not in files and target not in folders:
                yield name, line, f"links to {path}, which does not exist"
            elif anchor and anchor not in anchors(texts.get(target, "")):
                yield name, line, f"links to {link}, but {target} has no heading of that name"
