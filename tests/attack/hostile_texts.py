"""Texts that nobody writes, or that somebody wrote to do harm.

Each kind draws from a seeded generator.
"""

import random
from collections.abc import Callable, Sequence

import numpy as np

from spscanner_rag.results import ScanResult

Kind = Callable[[random.Random, int], str]

WORDS = (
    "the keeper signed a treaty ship harbour well Dr. e.g. No. 14 3.14 May who it U.S."
    " café naïve 400".split()
)
SCRIPTS = [
    *(
        (0x0370, 0x03FF),
        (0x0400, 0x04FF),
        (0x0590, 0x05FF),
        (0x0600, 0x06FF),
        (0x0900, 0x097F),
    ),
    *(
        (0x0E00, 0x0E7F),
        (0x1100, 0x11FF),
        (0x1800, 0x18AF),
        (0x3040, 0x30FF),
        (0x4E00, 0x9FFF),
    ),
    *(
        (0xAC00, 0xD7A3),
        (0xE000, 0xE0FF),
        (0x12000, 0x123FF),
        (0x1D400, 0x1D7FF),
        (0x20000, 0x2A6DF),
    ),
]
MARKUP = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "</td></tr></table>",
    "<!--",
    "]]>",
    "&lt;&#x202e;",
    "[bold red]x[/]",
    "[link=http://x]y[/link]",
    "[x](javascript:alert(3))",
    "```\n# head\n| a | b |",
    "{{7*7}} ${7*7} %s %n {0}",
    "<|endoftext|></s>[INST]",
    "\x1b]0;title\x07\x1b[2J\x9b31m",
)
FORMULAS = (
    '=HYPERLINK("http://x","y")',
    "@SUM(A1)",
    "+1+1",
    "-2+3|cmd",
    "\t=1",
    "＝1",
    r"$\frac{1}{2}\sum_{i=0}^{n} x_i^2$.",
    "∀x∈ℝ: ⌈x⌉ = −⌊−x⌋. ∮E·da = Q",
    "E = mc². H₂O → OH⁻ + H⁺!",
    "f(x)=x.y.z?.a!!.b",
)


def _joined(
    rng: random.Random,
    size: int,
    pieces: Sequence[str],
    gaps: Sequence[str] = (" ", ". ", "\n"),
) -> str:
    parts: list[str] = []
    length = 0
    while length < size:
        parts += [rng.choice(pieces), rng.choice(gaps)]
        length += len(parts[-1]) + len(parts[-2])
    return "".join(parts)


def _characters(rng: random.Random, size: int, *ranges: tuple[int, int]) -> str:
    return "".join(chr(rng.randint(*rng.choice(ranges))) for _ in range(size))


def one_script(rng: random.Random, size: int) -> str:
    script = rng.choice(SCRIPTS)
    words = [_characters(rng, rng.randint(1, 9), script) for _ in range(50)]
    return _joined(rng, size, words, (" ", "。", "। ", "؟ ", ". "))


def all_scripts(rng: random.Random, size: int) -> str:
    return _characters(rng, size, *SCRIPTS, (0x20, 0x7E))


def any_code_points(rng: random.Random, size: int) -> str:
    return _characters(rng, size, (0, 0x10FFFF), (0, 0xFF))


def bidirectional(rng: random.Random, size: int) -> str:
    controls = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200f"
    return _joined(rng, size, [*controls, *WORDS, "שלום", "مرحبا"], ("", " ", ". "))


def lone_surrogates(rng: random.Random, size: int) -> str:
    return _joined(
        rng, size, ["\ud800", "\udfff", "\udc00\ud800", *WORDS], ("", " ", ". ")
    )


def control_characters(rng: random.Random, size: int) -> str:
    controls = [chr(code) for code in (*range(32), *range(0x7F, 0xA0))]
    return _joined(rng, size, [*controls, *WORDS], ("", " ", ".\x00", "\r\n"))


def flags_and_emoji(rng: random.Random, size: int) -> str:
    emoji = ["👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🏴\U000e0067\U000e0062\U000e007f"]
    flags = [chr(code) for code in range(0x1F1E6, 0x1F200)]
    return _joined(
        rng, size, [*emoji, *flags], ("",) if rng.random() < 0.5 else ("", "", " ")
    )


def one_huge_word(rng: random.Random, size: int) -> str:
    letters = rng.choice(("x", "ab", "é", "東", "_", "9", "a-", "a'"))
    return (letters * size)[: 3 * size]


def nested_quotes(rng: random.Random, size: int) -> str:
    opening, closing = rng.choice(
        (
            ("“", "”"),
            ("«", "»"),
            ("(", ")"),
            ("[", "]"),
            ('"', '"'),
            ("'", "'"),
            ("「", "」"),
        )
    )
    depth = size // 8
    middle = rng.choice((" He left. ", "x", ""))
    kinds = (
        opening * depth + middle + closing * depth,
        (opening + "He left. ") * depth,
        "".join(rng.choice((opening, closing, "a. ")) for _ in range(size)),
    )
    return rng.choice(kinds)


def markup(rng: random.Random, size: int) -> str:
    return _joined(rng, size, [*MARKUP, *WORDS])


def formulas(rng: random.Random, size: int) -> str:
    return _joined(rng, size, [*FORMULAS, *WORDS])


def punctuation(rng: random.Random, size: int) -> str:
    return _joined(
        rng, size, [*".?!…。؟;:,-–'\"()", "...", "?!?!", "e.g.", "p.m."], ("", "", " ")
    )


def combining_marks(rng: random.Random, size: int) -> str:
    marks = "".join(chr(code) for code in range(0x300, 0x370))
    return _joined(rng, size, [f"e{marks}", "a\u034f\u200d", "क्ष", *WORDS], (" ", ". "))


def white_space(rng: random.Random, size: int) -> str:
    spaces = "\x0b\x0c\x1c\x1e\x85\u2028\u2029\u00a0\u3000\u200b\ufeff\r"
    words = [] if rng.random() < 0.2 else WORDS[:3]
    return _joined(rng, size, [*spaces, *words], ("", " ", "\n" * 9))


KINDS: dict[str, Kind] = {
    kind.__name__.replace("_", " "): kind
    for kind in (
        *(
            one_script,
            all_scripts,
            any_code_points,
            bidirectional,
            lone_surrogates,
            control_characters,
        ),
        *(
            flags_and_emoji,
            one_huge_word,
            nested_quotes,
            markup,
            formulas,
            punctuation,
            combining_marks,
        ),
        white_space,
    )
}


def check_result(result: ScanResult, text: str) -> None:
    """Spans are sentences in order, leave out white space alone, have finite logits."""
    end = 0
    for sentence in result.sentences:
        assert end <= sentence.start < sentence.end <= len(text)
        assert (
            text[sentence.start : sentence.end]
            == sentence.text
            == sentence.text.strip()
        )
        assert not text[end : sentence.start].strip()
        end = sentence.end
    assert not text[end:].strip()
    assert result.logits.shape == (len(result.sentences),)
    assert result.logits.dtype == np.float32
    assert np.isfinite(result.logits).all()
    assert ((result.scores >= 0) & (result.scores <= 1)).all()
