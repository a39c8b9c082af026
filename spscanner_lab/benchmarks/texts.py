"""Makes any number of texts of any length from the novel in `examples/data`, and questions about them."""

import random
import re
from pathlib import Path
from typing import NamedTuple

QUESTIONS = (
    "Who fell from the steps of the Cobb at Lyme?",
    "Where is the property that could make Mrs Smith rich again?",
    "Why was the engagement broken off eight years ago?",
    "Who becomes the tenant of Kellynch Hall?",
    "What book does Sir Walter Elliot read for his amusement?",
    "Whom does Charles Hayter want to marry?",
    "Where did Captain Harville take his lodgings?",
    "What does the letter to Anne say?",
    "Who is Mr Elliot, and what did he do to his friend?",
    "What happened to Dick Musgrove?",
    "Which poets does Captain Benwick admire?",
    "Why did the family have to leave their house?",
    "Who met Anne at the concert?",
    "How did Captain Wentworth make his fortune?",
    "Whom does Louisa marry in the end?",
    "Why does Mrs Clay stay in Bath?",
)
QUESTION = QUESTIONS[0]
CHARACTERS_PER_TOKEN = 3.72  # by the bundled tokenizer, in this novel
_WORD = re.compile(r"\b[a-z]{7,}\b")
_SYLLABLES = (
    "ba be bi bo bra cal cor da del dor en far fen gal gor ha hel is ka lan lor ma mer"
    " na nor os pel ri ro sa sel tan tor ul va ver win yar zo"
).split()
_NOVEL = Path(__file__).resolve().parents[2] / "examples" / "data" / "persuasion.txt"


def example_text(characters: int) -> str:
    """The novel, repeated and cut to this number of characters."""
    novel = _NOVEL.read_text(encoding="utf-8")
    return (novel * (characters // len(novel) + 1))[:characters]


def text_of_tokens(tokens: int) -> str:
    """The novel, repeated and cut to about this number of the bundled tokenizer's tokens."""
    return example_text(round(tokens * CHARACTERS_PER_TOKEN))


def short_texts(number: int, tokens: int) -> list[str]:
    """Different pieces of the novel, each of about ``tokens`` tokens."""
    width = round(tokens * CHARACTERS_PER_TOKEN)
    text = example_text(number * width)
    return [text[start : start + width] for start in range(0, len(text), width)]


class Asked(NamedTuple):
    """A question, the number of the document that answers it, and the sentence that does."""

    query: str
    document: int
    answer: str


def synthetic_corpus(
    documents: int, characters: int, questions: int
) -> tuple[list[str], list[Asked]]:
    """Texts of ``characters`` characters, drawn from the novel's sentences, and questions about some of them.

    In each text, some of the longer words are replaced by words of its own, so that the
    vocabulary grows.
    """
    sentences = [
        part.strip()
        for part in re.split(r"(?<=[.!?])\s+", example_text(600_000))
        if len(part) > 20
    ]
    long_words = sorted(set(_WORD.findall(" ".join(sentences))))
    drawn = random.Random(0)
    texts: list[str] = []
    asked: list[Asked] = []
    every = max(1, documents // questions)
    for number in range(documents):
        own = {word: _name(drawn).lower() for word in drawn.sample(long_words, 40)}
        place, keeper = (
            f"{_name(drawn)} {_name(drawn)}",
            f"{_name(drawn)} {_name(drawn)}",
        )
        answer = f"The keeper of the lighthouse at {place} was called {keeper}."
        parts, length = [], len(answer)
        while length < characters:
            parts.append(
                _WORD.sub(
                    lambda match, own=own: own.get(match[0], match[0]),
                    drawn.choice(sentences),
                )
            )
            length += len(parts[-1]) + 1
        parts.insert(drawn.randrange(len(parts) + 1), answer)
        texts.append(" ".join(parts))
        if number % every == 0 and len(asked) < questions:
            asked.append(Asked(f"Who kept the lighthouse at {place}?", number, answer))
    return texts, asked


def _name(drawn: random.Random) -> str:
    return "".join(drawn.choices(_SYLLABLES, k=drawn.randint(2, 4))).capitalize()
