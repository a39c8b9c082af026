"""Characters that Word takes from fonts of symbols, in Unicode."""

_SYMBOL_LETTERS = "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼"  # noqa: RUF001 - from 0x41 on
_SYMBOL_SIGNS = "ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑"  # noqa: RUF001 - from 0xA1 on
_SYMBOL = dict(zip(range(0x41, 0x7F), _SYMBOL_LETTERS, strict=False))
_SYMBOL |= dict(zip(range(0xA1, 0xE6), _SYMBOL_SIGNS, strict=False))
_SYMBOL |= {0x22: "∀", 0x24: "∃", 0x27: "∋", 0x2A: "∗", 0x2D: "−", 0x40: "≅", 0xF2: "∫"}  # noqa: RUF001
_WINGDINGS = {
    **{
        0x21: "✏",
        0x28: "☎",
        0x2A: "✉",
        0x36: "⌛",
        0x41: "✌",
        0x43: "👍",
        0x44: "👎",
        0x46: "☞",
        0x4A: "☺",
        0x4C: "☹",
    },
    **{
        0x6C: "●",
        0x6E: "■",
        0x6F: "□",
        0x71: "❑",
        0x72: "❒",
        0x75: "◆",
        0x76: "❖",
        0x77: "⬥",
        0x9F: "•",
        0xA1: "○",
    },
    **{
        0xA7: "▪",
        0xA8: "◻",
        0xAB: "★",
        0xD8: "➢",
        0xDF: "←",
        0xE0: "→",
        0xE1: "↑",
        0xE2: "↓",
        0xE8: "➔",
        0xF0: "⇨",
    },
    **{0xFB: "✗", 0xFC: "✓", 0xFD: "☒", 0xFE: "☑"},
}
_WINGDINGS_2 = {0x4F: "✗", 0x50: "✓", 0x51: "☒", 0x52: "☑", 0x53: "☒", 0x54: "☒", 0xA3: "□"}
_FONTS = {"symbol": _SYMBOL, "wingdings": _WINGDINGS, "wingdings 2": _WINGDINGS_2}
_PRIVATE = range(0xE000, 0xF900)


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
