"""Key phrases of a text as questions: phrases that it repeats and that are rare in other texts."""

import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.lexical.languages import STOP_WORDS

MOST_WORDS = 3
LEAST_SENTENCES, MOST_SENTENCES = 2, 12
"""Limits on the number of sentences with a key phrase, which are its evidence."""

COUNTED_CHARACTERS = 20_000_000
"""Characters of the corpus in which words are counted, since their vocabulary is held in memory."""

_WORD = re.compile(r"[^\W\d_][\w'’-]*")  # noqa: RUF001
_CHOICE = 4  # best phrases for each one that is drawn


class WordRarity:
    """How rare words are among documents, in a part of the corpus with about `COUNTED_CHARACTERS`."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._frequency: Counter[str] = Counter()
        self._documents = 0
        for document in documents:
            self._frequency.update({word.lower() for word in _WORD.findall(document.text)})
            self._documents += 1

    def idf(self, word: str) -> float:
        """Logarithm of the inverse share of documents with the word, never below 0."""
        return math.log((1 + self._documents) / (1 + self._frequency[word.lower()]))


def phrase_questions(
    text: str, spans: Sequence[tuple[int, int]], count: int, draw: random.Random, rarity: WordRarity
) -> list[Question]:
    """A `QuestionMaker` of key phrases, drawn from the best; their evidence is the sentences that contain them."""
    holders: dict[tuple[str, ...], list[int]] = {}  # phrase: sentences
    written: dict[tuple[str, ...], str] = {}
    for number, (start, end) in enumerate(spans):
        words = [match.span() for match in _WORD.finditer(text, start, end)]
        for phrase, wording in _phrases(text, words).items():
            holders.setdefault(phrase, []).append(number)
            written.setdefault(phrase, wording)
    scores = {
        phrase: math.log(1 + len(found)) * sum(rarity.idf(word) for word in phrase)
        for phrase, found in holders.items()
        if LEAST_SENTENCES <= len(found) <= MOST_SENTENCES
    }
    best = sorted(scores, key=lambda phrase: (-scores[phrase], phrase))[: _CHOICE * count]
    return [
        Question("phrase", written[phrase], tuple(spans[number] for number in holders[phrase]))
        for phrase in draw.sample(best, min(count, len(best)))
    ]


def _phrases(text: str, words: Sequence[tuple[int, int]]) -> dict[tuple[str, ...], str]:
    """Phrases of a sentence that neither start nor end with a stop word: in lower case, and as written."""
    found: dict[tuple[str, ...], str] = {}
    lowered = [text[start:end].lower() for start, end in words]
    for first in range(len(words)):
        for last in range(first, min(first + MOST_WORDS, len(words))):
            if last > first and text[words[last - 1][1] : words[last][0]] != " ":
                break  # the words of a phrase are separated by single spaces
            ends = (lowered[first], lowered[last])
            if all(word not in STOP_WORDS and len(word) > 2 for word in ends):
                found.setdefault(tuple(lowered[first : last + 1]), text[words[first][0] : words[last][1]])
    return found
