"""The written cases: quotes and claims about the documents of examples/data.

Quotes are made from sentences by a fixed seed, or written by hand
(tests/data/verification/quotes.jsonl); all claims are written by hand (claims.jsonl).
"""

import random
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from spscanner_rag.apps.verifying.differences import number_value
from spscanner_rag.text.segmentation import SentenceSegmenter
from tests.command_line import read_lines

EXAMPLES = Path(__file__).parents[3] / "examples" / "data"
WRITTEN = Path(__file__).parents[2] / "data" / "verification"
N_GENERATED = {"exact": 30, "word": 25, "number": 25, "negation": 20, "source": 10}

_NUMBER = re.compile(r"\b(?:\d{2,4}|two|three|four|five|six|seven|eight|nine|ten)\b")
_AUXILIARY = re.compile(r"\b(?:was|were|is|are|had|could|would|should|will|did)\b")
_DENIED = re.compile(r"\b(?:not|never) ")
_LONG_WORD = re.compile(r"\b[a-z]{5,}\b")


class QuoteCase(NamedTuple):
    """A quote, where it is from, what it cites, and what a check should say."""

    document: str
    quote: str
    cited: str
    status: str
    difference: str | None


class ClaimCase(NamedTuple):
    """A claim, the document it is about, and whether that supports it."""

    document: str
    claim: str
    is_supported: bool


@cache
def documents() -> dict[str, str]:
    """The texts of examples/data, by name."""
    texts = {"persuasion": (EXAMPLES / "persuasion.txt").read_text(encoding="utf-8")}
    for page in read_lines(EXAMPLES / "saltmere.jsonl"):
        texts[page["doc_id"]] = page["text"]
    return texts


def claim_cases() -> list[ClaimCase]:
    cases = []
    for line in read_lines(WRITTEN / "claims.jsonl"):
        cases.append(ClaimCase(line["document"], line["claim"], line["supported"]))
    return cases


def written_quotes() -> list[QuoteCase]:
    cases = []
    for line in read_lines(WRITTEN / "quotes.jsonl"):
        name = line["document"]
        cases.append(
            QuoteCase(name, line["quote"], name, line["status"], line["difference"])
        )
    return cases


def generated_quotes() -> list[QuoteCase]:
    """Quotes made from sentences: exact, or with one word, number, denial or source."""
    chance = random.Random(64)
    names = sorted(documents())
    sentences = list(_sentences())
    chance.shuffle(sentences)
    cases: list[QuoteCase] = []
    for kind, number in N_GENERATED.items():
        made = 0
        while made < number:
            name, sentence = sentences.pop()
            quote = _CHANGES[kind](sentence, chance)
            if quote is None:
                continue
            made += 1
            if kind == "source":
                other = chance.choice([one for one in names if one != name])
                cases.append(QuoteCase(name, quote, other, "elsewhere", None))
            elif kind == "exact":
                cases.append(QuoteCase(name, quote, name, "supported", None))
            else:
                cases.append(QuoteCase(name, quote, name, "altered", kind))
    return cases


def _sentences() -> Iterator[tuple[str, str]]:
    for name, text in documents().items():
        for unit in SentenceSegmenter().segment(text):
            sentence = text[unit.start : unit.end]
            if 8 <= len(sentence.split()) <= 40 and '"' not in sentence:
                yield name, sentence


def _exact(sentence: str, chance: random.Random) -> str:
    """The sentence, with other marks, white space or capitals, as answers have them."""
    changes: list[Callable[[str], str]] = [
        lambda text: text,
        lambda text: text.replace("'", "’").replace("--", "—"),
        lambda text: " ".join(text.split()),
        lambda text: text[0].lower() + text[1:].rstrip("."),
        lambda text: " ".join(text.split()[:8]).rstrip(","),
    ]
    return chance.choice(changes)(sentence)


def _other_word(sentence: str, chance: random.Random) -> str | None:
    matches = list(_LONG_WORD.finditer(sentence))
    if not matches:
        return None
    match = chance.choice(matches)
    word = chance.choice("garden copper winter basket marble lantern".split())
    return sentence[: match.start()] + word + sentence[match.end() :]


def _other_number(sentence: str, chance: random.Random) -> str | None:
    match = _NUMBER.search(sentence)
    if match is None:
        return None
    number = str(int(number_value(match[0]) or 0) + chance.randint(1, 8))
    return sentence[: match.start()] + number + sentence[match.end() :]


def _denied(sentence: str, chance: random.Random) -> str | None:
    denied = _DENIED.search(sentence)
    if denied is not None and chance.random() < 0.5:
        return sentence[: denied.start()] + sentence[denied.end() :]
    match = _AUXILIARY.search(sentence)
    if denied is not None or match is None:
        return None
    return f"{sentence[: match.end()]} not{sentence[match.end() :]}"


_CHANGES: dict[str, Callable[[str, random.Random], str | None]] = {
    "exact": _exact,
    "word": _other_word,
    "number": _other_number,
    "negation": _denied,
    "source": _exact,
}
