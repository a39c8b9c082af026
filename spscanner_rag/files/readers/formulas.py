"""Formulas as text: Word's OMML and the MathML of web pages in one line, such as "x^2 = (a+b)/2"."""

import re
from collections.abc import Mapping, Sequence

_SPACE = re.compile(r"\s+")
_INVISIBLE = str.maketrans(
    "", "", "\u2061\u2062\u2063\u2064"
)  # function application, invisible times and commas
_DEEPEST = 100  # elements within each other that are written with their structure
# Elements by their names in both languages; all others are written as they follow each other.
_FRACTIONS, _ROOTS = {"f", "mfrac"}, {"rad", "msqrt", "mroot"}
_BELOW, _ABOVE = {"ssub", "msub", "munder", "limlow"}, {"ssup", "msup", "mover", "limupp"}
_BOTH = {"ssubsup", "msubsup", "munderover"}
_OF_ROWS = {"m", "mtable", "eqarr"}
_UNREAD = {"annotation", "annotation-xml"}  # the same formula in another language
_PROPERTIES = "pr"  # Word's elements of properties end so
_CHARACTERS = {"chr": 0, "begchr": 0, "endchr": 1, "sepchr": 2}


class Formula:
    """A formula whose elements are read one by one; their names have no namespace."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._open: list[list[str]] = [[]]
        self._characters: list[list[str | None]] = [[None, None, None]]  # of operators and brackets (OMML)
        self._unread = 0  # open elements with the formula in another language
        self._annotation: list[str] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element of the formula begins."""
        name = name.lower()
        self._names.append(name)
        self._unread += name in _UNREAD
        if name in _CHARACTERS:  # in the properties of its operator
            value = next((text for key, text in attributes.items() if key.endswith("val")), "")
            self._characters[-1][_CHARACTERS[name]] = value[:1]
        self._open.append([])
        self._characters.append([None, None, None])
        if name == "mfenced":
            self._characters[-1] = [attributes.get("open", "(")[:1], attributes.get("close", ")")[:1], ", "]

    def data(self, text: str) -> None:
        """Text in the formula."""
        if not self._unread:
            self._open[-1].append(_SPACE.sub(" ", text.translate(_INVISIBLE)))
        elif self._names[-1] == "annotation":
            self._annotation.append(text)

    def end(self) -> None:
        """The element that began last ends."""
        name, characters = self._names.pop(), self._characters.pop()
        parts = [part for part in self._open.pop() if part.strip()]
        self._unread -= name in _UNREAD
        if name.endswith(_PROPERTIES):
            self._characters[-1] = characters
        elif parts:
            shallow = len(self._open) < _DEEPEST
            self._open[-1].append(_written(name, parts, characters) if shallow else "".join(parts))

    def text(self) -> str:
        """What was read so far, on one line; the annotation where there is nothing else."""
        while len(self._open) > 1:
            self.end()
        return " ".join("".join(self._open[0]).split()) or " ".join("".join(self._annotation).split())


def _written(name: str, parts: Sequence[str], characters: Sequence[str | None]) -> str:
    first, *rest = parts
    if name in _FRACTIONS and len(parts) == 2:
        return f"{_grouped(first)}/{_grouped(rest[0])}"
    if name in _ROOTS:
        degree, radicand = ("", "".join(parts)) if name == "msqrt" or len(parts) < 2 else parts[:2]
        degree, radicand = (radicand, degree) if name == "mroot" and degree else (degree, radicand)
        return f"{degree}√{_grouped(radicand)}"
    if name in _BELOW and len(parts) == 2:
        return f"{first}_{_grouped(rest[0])}"
    if name in _ABOVE and len(parts) == 2:
        return f"{_grouped(first)}^{_grouped(rest[0])}"
    if name in _BOTH and len(parts) == 3:
        after = " " if name == "munderover" else ""
        return f"{first}_{_grouped(rest[0])}^{_grouped(rest[1])}{after}"
    if name == "spre" and len(parts) == 3:
        return f"{rest[1]}_{_grouped(first)}^{_grouped(rest[0])}"
    if name in ("d", "mfenced"):
        opening, closing, between = characters
        between = between or "|"
        return (
            f"{'(' if opening is None else opening}{between.join(parts)}{')' if closing is None else closing}"
        )
    if name == "nary":
        limits = "".join(f"{mark}{_grouped(part)}" for mark, part in zip("_^", parts[:-1], strict=False))
        return f"{characters[0] or '∫'}{limits} {parts[-1]}"
    if name in ("acc", "bar"):
        return "".join(parts) + ("\u0305" if name == "bar" else characters[0] or "\u0302")
    if name in ("func", "mtd", "mtr", "mr") or name in _OF_ROWS:
        return ("; " if name in _OF_ROWS else " ").join(parts)
    return "".join(parts)


def _grouped(part: str) -> str:
    """A part in brackets, unless it is one number or word."""
    return part if part.replace(".", "", 1).isalnum() or (part[0] == "(" and part[-1] == ")") else f"({part})"
