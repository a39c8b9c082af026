"""Documents of any number and length, each with one fact that a question asks for; the same in every run."""

import random
import re
from typing import NamedTuple

from benchmarks.example_text import example_text

_WORD = re.compile(r"\b[a-z]{7,}\b")
_SYLLABLES = (
    "ba be bi bo bra cal cor da del dor en far fen gal gor ha hel is ka lan lor ma mer na nor os pel ri ro sa sel "
    "tan tor ul va ver win yar zo"
).split()


class Asked(NamedTuple):
    """A question, the document that answers it, and the sentence that does."""

    query: str
    document: int
    answer: str


def synthetic_corpus(documents: int, characters: int, questions: int) -> tuple[list[str], list[Asked]]:
    """Texts of about ``characters`` characters, and questions on some of them.

    The sentences are those of the novel in `examples/data`, drawn at random. In each document some of the longer
    words are replaced by words of its own, so that the vocabulary grows with the collection.
    """
    sentences = [part.strip() for part in re.split(r"(?<=[.!?])\s+", example_text(600_000)) if len(part) > 20]
    long_words = sorted(set(_WORD.findall(" ".join(sentences))))
    drawn = random.Random(0)
    texts: list[str] = []
    asked: list[Asked] = []
    every = max(1, documents // questions)
    for number in range(documents):
        own = {word: _name(drawn).lower() for word in drawn.sample(long_words, 40)}
        place, keeper = f"{_name(drawn)} {_name(drawn)}", f"{_name(drawn)} {_name(drawn)}"
        answer = f"The keeper of the lighthouse at {place} was called {keeper}."
        parts, length = [], len(answer)
        while length < characters:
            parts.append(
                _WORD.sub(lambda match, own=own: own.get(match[0], match[0]), drawn.choice(sentences))
            )
            length += len(parts[-1]) + 1
        parts.insert(drawn.randrange(len(parts) + 1), answer)
        texts.append(" ".join(parts))
        if number % every == 0 and len(asked) < questions:
            asked.append(Asked(f"Who kept the lighthouse at {place}?", number, answer))
    return texts, asked


def _name(drawn: random.Random) -> str:
    return "".join(drawn.choices(_SYLLABLES, k=drawn.randint(2, 4))).capitalize()
