"""What HTML and DOCX write alike, as text: numbers of lists, formulas."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

_ROMAN = [(1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl")]
_ROMAN += [(10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")]
_CARDINALS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
).split()
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
).split()
RAISED = str.maketrans("0123456789+-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")  # noqa: RUF001
_MOST_LETTERS = 30  # of one number; the larger ones are digits


def whole_number(text: str, most: int, default: int = 0) -> int:
    """The number that an attribute of a file says, no larger than ``most``; ``default`` if it says none."""
    digits = text.strip()
    if not (digits.isascii() and digits.isdecimal()):
        return default
    return min(int(digits), most) if len(digits) < 10 else most


def roman(number: int) -> str:
    """As in "iv"; digits outside 1 to 3,999."""
    if not 0 < number < 4000:
        return str(number)
    found = ""
    for value, letters in _ROMAN:
        found += letters * (number // value)
        number %= value
    return found


def letters(number: int, *, repeated: bool) -> str:
    """As in "c". After "z" comes "aa", and then "bb" where letters are ``repeated`` (Word), else "ab" (HTML)."""
    if not 0 < number <= 26 * _MOST_LETTERS:
        return str(number)
    turn, letter = divmod(number - 1, 26)
    if repeated:
        return chr(ord("a") + letter) * (turn + 1)
    return (letters(turn, repeated=False) if turn else "") + chr(ord("a") + letter)


def numeral(number: int, form: str, *, repeated: bool = False) -> str:
    """A number in the form of a list's first: 1, 01, a, A, i or I; see `letters`."""
    match form:
        case "a" | "A":
            found = letters(number, repeated=repeated)
        case "i" | "I":
            found = roman(number)
        case "01":
            found = f"{number:02}"
        case _:
            found = str(number)
    return found.upper() if form.isupper() else found


def cardinal(number: int) -> str:
    """As in "twenty"; digits after that."""
    return _CARDINALS[number - 1] if 0 < number <= len(_CARDINALS) else str(number)


def ordinal(number: int) -> str:
    """As in "21st"."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ending}"


def ordinal_word(number: int) -> str:
    """As in "twentieth"; as `ordinal` after that."""
    return _ORDINALS[number - 1] if 0 < number <= len(_ORDINALS) else ordinal(number)


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
# The same formula in another language; of Word, what was deleted, codes of fields, and properties, which end so.
_UNREAD = ("annotation", "annotation-xml", "}del", "}moveFrom", "}delText", "}instrText", "Pr")

Element = Any
"""Of lxml or of the standard library."""


def formula_text(element: Element) -> str:
    """A formula on one line; its annotation where there is nothing else."""
    annotations = (each.text or "" for each in element.iterfind(".//{*}annotation"))
    return " ".join("".join(_parts(element, 1)).split()) or " ".join("".join(annotations).split())


def _parts(element: Element, depth: int) -> Iterator[str]:
    yield _plain(element.text)
    for child in element:
        name = child.tag.rpartition("}")[2].lower()
        if not child.tag.endswith(_UNREAD):
            parts = _parts(child, depth + 1) if depth < _DEEPEST else map(_plain, child.itertext())
            if filled := [part for part in parts if part.strip()]:
                yield _written(name, filled, child) if depth < _DEEPEST else "".join(filled)
        yield _plain(child.tail)


def _plain(text: str | None) -> str:
    return _SPACE.sub(" ", (text or "").translate(_INVISIBLE))


def _sign(element: Element, name: str, default: str) -> str:
    """The character that the properties of an operator or of brackets name (OMML)."""
    found = element.find(f"*/{{*}}{name}")
    if found is None:
        return default
    return next((text for key, text in found.items() if key.endswith("val")), "")[:1]


def _written(name: str, parts: Sequence[str], element: Element) -> str:
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
    if name == "mfenced":
        return f"{element.get('open', '(')[:1]}{', '.join(parts)}{element.get('close', ')')[:1]}"
    if name == "d":
        between = _sign(element, "sepChr", "") or "|"
        return f"{_sign(element, 'begChr', '(')}{between.join(parts)}{_sign(element, 'endChr', ')')}"
    if name == "nary":
        limits = "".join(f"{mark}{_grouped(part)}" for mark, part in zip("_^", parts[:-1], strict=False))
        return f"{_sign(element, 'chr', '') or '∫'}{limits} {parts[-1]}"
    if name in ("acc", "bar"):
        return "".join(parts) + ("\u0305" if name == "bar" else _sign(element, "chr", "") or "\u0302")
    if name in ("func", "mtd", "mtr", "mr") or name in _OF_ROWS:
        return ("; " if name in _OF_ROWS else " ").join(parts)
    return "".join(parts)


def _grouped(part: str) -> str:
    """A part in brackets, unless it is one number or word."""
    return part if part.replace(".", "", 1).isalnum() or (part[0] == "(" and part[-1] == ")") else f"({part})"
