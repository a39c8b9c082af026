"""Characters that Word takes from fonts of symbols, in Unicode."""

import re

from spscanner_rag.files.readers.numerals import RAISED

_SYMBOL_LETTERS = "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼"  # noqa: RUF001 - from 0x41 on
_SYMBOL_SIGNS = "ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑"  # noqa: RUF001 - from 0xA1 on
_SYMBOL = dict(zip(range(0x41, 0x7F), _SYMBOL_LETTERS, strict=False))
_SYMBOL |= dict(zip(range(0xA1, 0xE6), _SYMBOL_SIGNS, strict=False))
_SYMBOL |= {0x22: "∀", 0x24: "∃", 0x27: "∋", 0x2A: "∗", 0x2D: "−", 0x40: "≅", 0xF2: "∫"}  # noqa: RUF001
_WINGDINGS = dict(
    zip(
        bytes.fromhex("21282a36414344464a4c6c6e6f71727576779fa1a7a8abd8dfe0e1e2e8f0fbfcfdfe"),
        "✏☎✉⌛✌👍👎☞☺☹●■□❑❒◆❖⬥•○▪◻★➢←→↑↓➔⇨✗✓☒☑",
        strict=True,
    )
)
_WINGDINGS_2 = dict(zip(bytes.fromhex("4f5051525354a3"), "✗✓☒☑☒☒□", strict=True))
_FONTS = {"symbol": _SYMBOL, "wingdings": _WINGDINGS, "wingdings 2": _WINGDINGS_2}
_PRIVATE = range(0xE000, 0xF900)
_IN_FONT = re.compile("[\ue000-\uf8ff]")
_DIGITS = re.compile(r"[-+−]?\d{1,4}", re.ASCII)  # noqa: RUF001


def symbol(font: str, code: str) -> str:
    """A character by its font and its number, in hexadecimal digits; U+FFFD for one that is not known."""
    try:
        number = int(code[:6], 16)
        known = _FONTS.get(font.lower().strip())
        if known is None and number not in _PRIVATE:
            return chr(number)
        number &= 0xFF if number in _PRIVATE else -1
        return (known or {}).get(number) or (
            chr(number) if font.lower() == "symbol" and number < 0x7F else "\ufffd"
        )
    except (ValueError, OverflowError):
        return "\ufffd"


def shown(text: str, font: str, *, raised: bool) -> str:
    """The text of a run: of a font of symbols in Unicode, and raised digits as such, which "10" and "3" need."""
    if font.lower() in _FONTS and _IN_FONT.search(text):
        text = _IN_FONT.sub(lambda match: symbol(font, f"{ord(match[0]):x}"), text)
    return text.translate(RAISED) if raised and _DIGITS.fullmatch(text) else text
