"""Writes notation of HTML and DOCX as text: list numbers, symbols, formulas."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

_ROMAN = [
    (1000, "m"),
    (900, "cm"),
    (500, "d"),
    (400, "cd"),
    (100, "c"),
    (90, "xc"),
    (50, "l"),
    (40, "xl"),
    (10, "x"),
    (9, "ix"),
    (5, "v"),
    (4, "iv"),
    (1, "i"),
]
STRUCK_MARK = "~~"
"""Stands before and after text that is struck out, as in Markdown."""

RAISED = str.maketrans("0123456789+-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")  # noqa: RUF001
_MOST_LETTERS = 30  # letters of one number; larger numbers are written in digits


def struck(text: str) -> str:
    """A text with the marks of struck text, or white space as it is.

    Examples
    --------
    >>> struck("rain"), struck(" ")
    ('~~rain~~', ' ')
    """
    return f"{STRUCK_MARK}{text}{STRUCK_MARK}" if text.strip() else text


def struck_joined(text: str) -> str:
    """A text whose struck parts are marked, with those beside each other as one.

    Examples
    --------
    >>> struck_joined("It ~~rai~~~~ned~~.")
    'It ~~rained~~.'
    """
    return text.replace(2 * STRUCK_MARK, "")


def whole_number(text: str, most: int, default: int = 0) -> int:
    """The whole number in an attribute, at most ``most``.

    ``default`` if the attribute is not one.
    """
    digits = text.strip()
    if not (digits.isascii() and digits.isdecimal()):
        return default
    return min(int(digits), most) if len(digits) < 10 else most


def numeral(number: int, form: str, *, repeated: bool = False) -> str:
    """A list number in the format 1, 01, a, A, i or I.

    In digits if the format has no letters for it.

    "z" is followed by "aa", and that by "bb" if letters are ``repeated`` (Word), else
    by "ab" (HTML).
    """
    if form == "01":
        written = f"{number:02}"
    elif form in ("a", "A") and 0 < number <= 26 * _MOST_LETTERS:
        written = _letters(number, repeated=repeated)
    elif form in ("i", "I") and 0 < number < 4000:
        written = _roman(number)
    else:
        written = str(number)
    return written.upper() if form.isupper() else written


def _letters(number: int, *, repeated: bool) -> str:
    turn, position = divmod(number - 1, 26)
    letter = chr(ord("a") + position)
    if repeated:
        return letter * (turn + 1)
    if turn:
        return _letters(turn, repeated=False) + letter
    return letter


def _roman(number: int) -> str:
    written = ""
    for value, letters in _ROMAN:
        written += letters * (number // value)
        number %= value
    return written


_SYMBOL_LETTERS = "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼"  # noqa: RUF001 - from 0x41 on
_SYMBOL_SIGNS = "ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑"  # noqa: RUF001 - from 0xA1 on
_SYMBOL = {number: chr(number) for number in range(0x7F)} | dict(
    enumerate(_SYMBOL_LETTERS, 0x41)
)
_SYMBOL |= dict(enumerate(_SYMBOL_SIGNS, 0xA1))
_SYMBOL |= {
    0x22: "∀",
    0x24: "∃",
    0x27: "∋",
    0x2A: "∗",  # noqa: RUF001
    0x2D: "−",  # noqa: RUF001
    0x40: "≅",
    0xF2: "∫",
}
_WINGDINGS = "✏☎✉⌛✌👍👎☞☺☹●■□❑❒◆❖⬥•○▪◻★➢←→↑↓➔⇨✗✓☒☑"
_WINGDINGS_AT = (  # in hexadecimal digits
    "21282a36414344464a4c6c6e6f71727576779fa1a7a8abd8dfe0e1e2e8f0fbfcfdfe"
)
_FONTS = {
    "symbol": _SYMBOL,
    "wingdings": dict(zip(bytes.fromhex(_WINGDINGS_AT), _WINGDINGS, strict=True)),
    "wingdings 2": dict(zip(bytes.fromhex("4f5051525354a3"), "✗✓☒☑☒☒□", strict=True)),
}
_PRIVATE = range(0xE000, 0xF900)
_IN_FONT = re.compile("[\ue000-\uf8ff]")


def symbol(font: str, code: str) -> str:
    """The character with a hexadecimal number in a font.

    U+FFFD if it is unknown.
    """
    characters = _FONTS.get(font.lower().strip())
    try:
        number = int(code[:6], 16)
        if characters is None and number not in _PRIVATE:
            return chr(number)
    except ValueError:
        return "\ufffd"
    if characters is None:
        return "\ufffd"
    if number in _PRIVATE:
        number &= 0xFF
    return characters.get(number, "\ufffd")


def symbols_of(font: str, text: str) -> str:
    """The text of a run, converted to Unicode if its font is a symbol font."""
    if font.lower() not in _FONTS:
        return text
    return _IN_FONT.sub(lambda match: symbol(font, f"{ord(match[0]):x}"), text)


_SPACE = re.compile(r"\s+")
# function application, times, commas and plus
_INVISIBLE = dict.fromkeys(range(0x2061, 0x2065))
_DEEPEST = 100  # depth of elements up to which their structure is written
# The same formula in another notation; in Word, deleted text, field codes, and
# properties (names end in "Pr").
_UNREAD = (
    "annotation",
    "annotation-xml",
    "}del",
    "}moveFrom",
    "}delText",
    "}instrText",
    "Pr",
)

Element = Any
"""An element of lxml or of the standard library."""


def formula_text(element: Element) -> str:
    """A formula on one line, or its annotation if there is nothing else."""
    line = " ".join("".join(_parts(element, 1)).split())
    if line:
        return line
    annotation = ""
    for annotation_element in element.iterfind(".//{*}annotation"):
        annotation += annotation_element.text or ""
    return " ".join(annotation.split())


def _parts(element: Element, depth: int) -> Iterator[str]:
    yield _plain(element.text)
    for child in element:
        if not isinstance(child.tag, str):  # an entity, which is not expanded
            yield _plain(child.text)
            yield _plain(child.tail)
            continue
        name = child.tag.rpartition("}")[2].lower()
        if child.tag.endswith(_UNREAD):
            pass
        elif depth < _DEEPEST:
            filled = _filled(_parts(child, depth + 1))
            if filled:
                yield _written(name, filled, child)
        else:
            yield "".join(_filled(map(_plain, child.itertext())))
        yield _plain(child.tail)


def _filled(parts: Iterable[str]) -> list[str]:
    return [part for part in parts if part.strip()]


def _plain(text: str | None) -> str:
    return _SPACE.sub(" ", (text or "").translate(_INVISIBLE))


def _sign(element: Element, name: str, default: str) -> str:
    """The character in the properties of an operator or of brackets (OMML)."""
    sign = element.find(f"*/{{*}}{name}")
    if sign is None:
        return default
    for attribute, text in sign.items():
        if attribute.endswith("val"):
            return str(text[:1])
    return ""


def _written(name: str, parts: Sequence[str], element: Element) -> str:
    """Write an element by its name in OMML or MathML.

    For other names, its parts one after the other.
    """
    match name, parts:
        case "f" | "mfrac", [above, below]:
            return f"{_grouped(above)}/{_grouped(below)}"
        case ("rad", [degree, radicand, *_]) | ("mroot", [radicand, degree, *_]):
            return f"{degree}√{_grouped(radicand)}"
        case "rad" | "mroot" | "msqrt", _:
            return f"√{_grouped(''.join(parts))}"
        case "ssub" | "msub" | "munder" | "limlow", [base, below]:
            return f"{base}_{_grouped(below)}"
        case "ssup" | "msup" | "mover" | "limupp", [base, above]:
            return f"{_grouped(base)}^{_grouped(above)}"
        case ("ssubsup" | "msubsup" | "munderover", [base, below, above]) | (
            "spre",
            [below, above, base],
        ):
            end = " " if name == "munderover" else ""
            return f"{base}_{_grouped(below)}^{_grouped(above)}{end}"
        case _:
            return _enclosed(name, parts, element)


def _enclosed(name: str, parts: Sequence[str], element: Element) -> str:
    """Write brackets, sums, accents and tables, which `_written` leaves."""
    match name, parts:
        case "mfenced", _:
            opening = element.get("open", "(")[:1]
            closing = element.get("close", ")")[:1]
            return f"{opening}{', '.join(parts)}{closing}"
        case "d", _:
            between = _sign(element, "sepChr", "") or "|"
            opening = _sign(element, "begChr", "(")
            closing = _sign(element, "endChr", ")")
            return f"{opening}{between.join(parts)}{closing}"
        case "nary", [*limits, body]:
            operator = _sign(element, "chr", "") or "∫"
            for mark, limit in zip("_^", limits, strict=False):
                operator += f"{mark}{_grouped(limit)}"
            return f"{operator} {body}"
        case "acc", _:
            return "".join(parts) + (_sign(element, "chr", "") or "\u0302")
        case "bar", _:
            return "".join(parts) + "\u0305"
        case "m" | "mtable" | "eqarr", _:
            return "; ".join(parts)
        case "func" | "mtd" | "mtr" | "mr", _:
            return " ".join(parts)
        case _:
            return "".join(parts)


def _grouped(part: str) -> str:
    """A part in brackets, unless it is a single number or word, or has brackets."""
    if part.replace(".", "", 1).isalnum():
        return part
    if part[0] == "(" and part[-1] == ")":
        return part
    return f"({part})"
