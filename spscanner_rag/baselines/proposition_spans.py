"""Passages to decompose, and the sentence of its passage that a proposition belongs to."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Unit

PASSAGE_WORDS = 100
"""Maximum length of a passage in words, as in "Dense X Retrieval"."""

Terms = frozenset[str | tuple[str, str]]

# Chinese and Japanese are written without spaces, so each of their characters counts as a word.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")


def passages_of(text: str, most_words: int = PASSAGE_WORDS) -> Iterator[list[Unit]]:
    """Split a text into passages of whole sentences, each of at most ``most_words`` or of one sentence."""
    passage: list[Unit] = []
    count = 0
    for unit in SentenceSegmenter().segment(text):
        length = len(text[unit.start : unit.end].split())
        if passage and count + length > most_words:
            yield passage
            passage, count = [], 0
        passage.append(unit)
        count += length
    if passage:
        yield passage


def terms(text: str) -> Terms:
    """The distinct words and pairs of adjacent words of a text, ignoring case."""
    words = _WORD.findall(text.casefold())
    return frozenset(words) | frozenset(pairwise(words))


def tie(statement: str, sentences: Sequence[tuple[Terms, int, int]]) -> tuple[int, int] | None:
    """The span of the sentence with which a statement shares most terms; the last one of several.

    ``sentences`` holds the terms, start and end of each sentence. None if the statement shares no term with any.
    """
    own = terms(statement)
    shared = [len(own & of_sentence) for of_sentence, _, _ in sentences]
    most = max(shared, default=0)
    if not most:
        return None
    last = len(shared) - 1 - shared[::-1].index(most)
    return sentences[last][1:]
