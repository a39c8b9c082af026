"""Texts of any number and length from the novel in `examples/data`, with questions."""

import random
import re
from collections.abc import Mapping, Sequence
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

_NEW_WORDS = 40  # longer words of each synthetic text that are replaced
_LONG_WORD = re.compile(r"\b[a-z]{7,}\b")
_SYLLABLES = (
    "ba be bi bo bra cal cor da del dor en far fen gal gor ha hel is ka lan lor ma mer"
    " na nor os pel ri ro sa sel tan tor ul va ver win yar zo"
).split()
_NOVEL = Path(__file__).resolve().parents[2] / "examples" / "data" / "persuasion.txt"


def example_text(characters: int) -> str:
    """The novel, repeated and cut to this number of characters.

    Examples
    --------
    >>> from spscanner_lab.benchmarks.texts import example_text
    >>> example_text(10)
    'Persuasion'
    """
    novel = _NOVEL.read_text(encoding="utf-8")
    return (novel * (characters // len(novel) + 1))[:characters]


def text_of_tokens(tokens: int) -> str:
    """The novel, repeated and cut to about this number of the bundled tokens."""
    return example_text(round(tokens * CHARACTERS_PER_TOKEN))


def short_texts(number: int, tokens: int) -> list[str]:
    """Different pieces of the novel, each of about ``tokens`` tokens."""
    width = round(tokens * CHARACTERS_PER_TOKEN)
    text = example_text(number * width)
    return [text[start : start + width] for start in range(0, len(text), width)]


class SyntheticQuestion(NamedTuple):
    """A question, the number of the document that answers it, and the answer.

    The answer is a sentence of the document.
    """

    query: str
    document: int
    answer: str


def synthetic_corpus(
    documents: int, characters: int, questions: int
) -> tuple[list[str], list[SyntheticQuestion]]:
    """Texts drawn from the novel's sentences, and questions about some of them.

    A text has about ``characters`` characters. In each, some of the longer words are
    replaced by words of its own, so that the vocabulary grows.
    """
    sentences = []
    for part in re.split(r"(?<=[.!?])\s+", example_text(600_000)):
        if len(part) > 20:
            sentences.append(part.strip())
    long_words = sorted(set(_LONG_WORD.findall(" ".join(sentences))))
    drawn = random.Random(0)
    texts: list[str] = []
    synthetic_questions: list[SyntheticQuestion] = []
    interval = max(1, documents // questions)
    for number in range(documents):
        new_words = {}
        for word in drawn.sample(long_words, _NEW_WORDS):
            new_words[word] = _name(drawn).lower()
        place = f"{_name(drawn)} {_name(drawn)}"
        keeper = f"{_name(drawn)} {_name(drawn)}"
        answer = f"The keeper of the lighthouse at {place} was called {keeper}."
        parts = _parts(drawn, sentences, new_words, characters - len(answer))
        parts.insert(drawn.randrange(len(parts) + 1), answer)
        texts.append(" ".join(parts))
        if number % interval == 0 and len(synthetic_questions) < questions:
            query = f"Who kept the lighthouse at {place}?"
            synthetic_questions.append(SyntheticQuestion(query, number, answer))
    return texts, synthetic_questions


def _parts(
    drawn: random.Random,
    sentences: Sequence[str],
    new_words: Mapping[str, str],
    characters: int,
) -> list[str]:
    """Sentences with the new words, until they have this number of characters."""

    def replaced(match: re.Match[str]) -> str:
        return new_words.get(match[0], match[0])

    parts: list[str] = []
    length = 0
    while length < characters:
        parts.append(_LONG_WORD.sub(replaced, drawn.choice(sentences)))
        length += len(parts[-1]) + 1
    return parts


def _name(drawn: random.Random) -> str:
    return "".join(drawn.choices(_SYLLABLES, k=drawn.randint(2, 4))).capitalize()
