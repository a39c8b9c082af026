"""Writes notation of HTML and DOCX as text: list numbers, symbols, formulas."""

import re
from collections.abc import Iterator, Sequence
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
]
_ROMAN += [(10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")]
RAISED = str.maketrans("0123456789+-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")  # noqa: RUF001
_MOST_LETTERS = 30  # letters of one number; larger numbers are written in digits


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
    found = f"{number:02}" if form == "01" else str(number)
    if form in ("a", "A") and 0 < number <= 26 * _MOST_LETTERS:
        turn, letter = divmod(number - 1, 26)
        found = chr(ord("a") + letter)
        found = (
            found * (turn + 1)
            if repeated
            else (numeral(turn, "a") if turn else "") + found
        )
    elif form in ("i", "I") and 0 < number < 4000:
        found = ""
        for value, letters in _ROMAN:
            found += letters * (number // value)
            number %= value
    return found.upper() if form.isupper() else found


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
    """The character with a hexadecimal number in a font; U+FFFD if it is unknown."""
    known = _FONTS.get(font.lower().strip())
    try:
        number = int(code[:6], 16)
        if known is None and number not in _PRIVATE:
            return chr(number)
        return (known or {}).get(
            number & 0xFF if number in _PRIVATE else number, "\ufffd"
        )
    except ValueError:
        return "\ufffd"


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
    """A formula on one line; its annotation if there is nothing else."""
    annotations = (each.text or "" for each in element.iterfind(".//{*}annotation"))
    return " ".join("".join(_parts(element, 1)).split()) or " ".join(
        "".join(annotations).split()
    )


def _parts(element: Element, depth: int) -> Iterator[str]:
    yield _plain(element.text)
    for child in element:
        name = child.tag.rpartition("}")[2].lower()
        if not child.tag.endswith(_UNREAD):
            parts = (
                _parts(child, depth + 1)
                if depth < _DEEPEST
                else map(_plain, child.itertext())
            )
            if filled := [part for part in parts if part.strip()]:
                yield (
                    _written(name, filled, child)
                    if depth < _DEEPEST
                    else "".join(filled)
                )
        yield _plain(child.tail)


def _plain(text: str | None) -> str:
    return _SPACE.sub(" ", (text or "").translate(_INVISIBLE))


def _sign(element: Element, name: str, default: str) -> str:
    """The character given in the properties of an operator or of brackets (OMML)."""
    found = element.find(f"*/{{*}}{name}")
    if found is None:
        return default
    return next((text for key, text in found.items() if key.endswith("val")), "")[:1]


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
    """Write brackets, sums, accents and tables; the rest of `_written`."""
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
            signed = (
                f"{mark}{_grouped(part)}"
                for mark, part in zip("_^", limits, strict=False)
            )
            return f"{_sign(element, 'chr', '') or '∫'}{''.join(signed)} {body}"
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
    return (
        part
        if part.replace(".", "", 1).isalnum() or (part[0] == "(" and part[-1] == ")")
        else f"({part})"
    )
