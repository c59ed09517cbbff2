"""Reads the headers of the contract: structs with their fields, enumerators, scalar types, constants.

Not a C parser: it knows the subset that abi/ is written in, and refuses what it does not know, so
that nothing of a header can be overlooked in silence (class Unknown).
"""

import re

# Frozen for ever, so without a V1 size: they nest in others by value.
FROZEN_STRUCTS = {"kpt_str", "kpt_value", "kpt_attr", "kpt_traceback", "kpt_symbol_span", "kpt_tape_value",
                  "kpt_tape_tensor"}

FIXED = re.compile(r"^(u?int(8|16|32|64)_t|double|char|void|kpt_\w+)$")


class Unknown(Exception):
    """Something in a header that this reader does not know how to read."""


class Field:
    def __init__(self, name, start, end):
        self.name, self.start, self.end = name, start, end  # its place in the header's text


class Struct:
    def __init__(self, name, header, fields):
        self.name, self.header, self.fields = name, header, fields
        self.v1_macro = None
        self.v1_field = None


class Contract:
    """What the headers of a folder declare."""

    def __init__(self, folder):
        self.headers = sorted(path.name for path in folder.glob("*.h"))
        self.structs, self.enumerators, self.scalars, self.constants = {}, {}, [], {}
        self.functions, self.v1_macros, self.words = set(), {}, set()
        if not self.headers:
            raise Unknown(f"no headers in {folder}")
        for header in self.headers:
            text = (folder / header).read_text()
            self._read(header, blank(text, comments=True))
        self._check()

    def _read(self, header, text):
        code = blank(text, directives=True)
        self.words |= set(re.findall(r"\b(?:KPT|kpt)_\w+", code))
        self._read_directives(header, text)
        for match in re.finditer(r"\bstruct\s+(\w+)\s*\{", code):
            self._read_struct(header, code, match)
        for match in re.finditer(r"\benum\b(\s+\w+)?\s*\{", code):
            self._read_enum(header, code[match.end():code.index("}", match.end())])
        if re.search(r"\bunion\b", code):
            raise Unknown(f"{header}: a union")
        self._read_typedefs(header, code)

    def _read_directives(self, header, text):
        for match in re.finditer(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:\\\n|[^\n])*)", text, re.M):
            name, rest = match.group(1), match.group(2)
            value = rest.strip()
            end = re.fullmatch(r"KPT_FIELD_END\(\s*(\w+)\s*,\s*(\w+)\s*\)", value)
            if end and name.endswith("_V1_SIZE"):
                self.v1_macros[name] = end.groups()
            elif re.fullmatch(r'"[^"]*"|\d+|UINT32_MAX', value):
                self.constants[name] = value
            elif value and not rest.startswith("("):
                raise Unknown(f"{header}: the constant {name} is {value}")

    def _read_struct(self, header, code, match):
        name, start = match.group(1), match.end()
        end = code.index("}", start)
        if "{" in code[start:end]:
            raise Unknown(f"{header}: {name} holds a nested type")
        if not code[:match.start()].endswith("typedef ") or not re.match(
                rf"\}}\s*{name}\s*;", code[end:]):
            raise Unknown(f"{header}: {name} is not written typedef struct {name} {{ … }} {name};")
        fields, position = [], start
        for declaration in code[start:end].split(";")[:-1]:
            first = position + len(declaration) - len(declaration.lstrip())
            position += len(declaration) + 1
            fields.append(Field(field_name(header, name, declaration), first, position))
        if code[position:end].strip():
            raise Unknown(f"{header}: {name} ends in {code[position:end].strip()}")
        if name in self.structs:
            raise Unknown(f"{header}: {name} is there twice")
        self.structs[name] = Struct(name, header, fields)

    def _read_enum(self, header, body):
        for item in filter(None, (part.strip() for part in body.split(","))):
            match = re.fullmatch(r"(KPT_\w+)\s*=\s*(-?\w+(?:\s*<<\s*\d+)?)", item)
            if not match:
                raise Unknown(f"{header}: the enumerator {item} has no plain value")
            if match.group(1) in self.enumerators:
                raise Unknown(f"{header}: {match.group(1)} is there twice")
            self.enumerators[match.group(1)] = header

    def _read_typedefs(self, header, code):
        for match in re.finditer(r"\btypedef\b([^;{]*)([;{])", code):
            text = " ".join(match.group(1).split())
            function = re.match(r"[\w* ]+\(\*(\w+)\)\s*\(", text)
            scalar = re.fullmatch(r"u?int\d+_t (\w+)", text)
            if match.group(2) == "{":
                continue  # a struct, read above
            if function:
                self.functions.add(function.group(1))
            elif scalar:
                self.scalars.append(scalar.group(1))
            else:
                raise Unknown(f"{header}: typedef {text}")

    def _check(self):
        """Everything that is named is known, and every struct has its V1 size."""
        known = {*self.structs, *self.enumerators, *self.scalars, *self.functions}
        if self.words - known:
            raise Unknown(f"named, but not read: {', '.join(sorted(self.words - known))}")
        for macro, (name, field) in self.v1_macros.items():
            struct = self.structs.get(name)
            if struct is None or field not in [each.name for each in struct.fields]:
                raise Unknown(f"{macro} is about {name}.{field}, which is not there")
            struct.v1_macro, struct.v1_field = macro, field
        for struct in self.structs.values():
            if (struct.v1_macro is None) != (struct.name in FROZEN_STRUCTS):
                raise Unknown(f"{struct.name}: its V1 size is missing, or it is frozen for ever")


def blank(text, comments=False, directives=False):
    """The text with these turned into spaces, so that offsets stay."""
    def spaces(match):
        return re.sub(r"[^\n]", " ", match.group())
    if comments:
        text = re.sub(r"/\*.*?\*/|//[^\n]*", spaces, text, flags=re.S)
    if directives:
        text = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", spaces, text, flags=re.M)
        # Bodies of inline functions declare nothing that crosses the boundary.
        text = re.sub(r'\bextern\s+"C"\s*\{', spaces, text)
        text = re.sub(r"^static inline [^;{]*\n\{\n.*?^\}$", spaces, text, flags=re.S | re.M)
    return text


def field_name(header, struct, declaration):
    """The name that one member declaration declares; its type must be of fixed width."""
    text = " ".join(declaration.split())
    pointer = re.match(r"([\w ]+?)[ *]*\(\*(\w+)\)\s*\(", text)
    plain = re.fullmatch(r"((?:const )?(?:struct )?\w+) ?((?:\* ?)*)(\w+)(\[\w+\])?", text)
    if not pointer and not plain:
        raise Unknown(f"{header}: {struct}: the member {text}")
    kind = (pointer or plain).group(1).split()[-1]
    if not FIXED.match(kind):
        raise Unknown(f"{header}: {struct}: {text} has no fixed width")
    return pointer.group(2) if pointer else plain.group(3)
