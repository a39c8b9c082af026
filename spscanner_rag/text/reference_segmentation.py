"""The units of the published scanners, cut as by their authors.

Source: ``document_tokenization.py`` of
https://github.com/MambaRetriever/MambaRetriever, commit 86a8eb4.
"""

import re
from collections.abc import Callable, Iterator
from itertools import chain
from typing import NamedTuple

from spscanner_rag.text.offline import network_is_off
from spscanner_rag.text.punkt import load_sentence_tokenizer
from spscanner_rag.text.spans import cut_long_span, spans_between, trim_span
from spscanner_rag.text.surrogates import replace_surrogates
from spscanner_rag.text.units import Unit

# The original's constants: words per part, tokens per unit, and the length at which it
# drops a part.
_PART_WORDS = 50
_UNIT_TOKENS = 20
_DROPPED_CHARACTERS = 1000
# What it trims from the start of a document: not every white-space character.
_TRIMMED = " \n\xa0\r\t\x0c\u2003"

_WORD = re.compile(r"\S+")


class _Part(NamedTuple):
    """A part of a sentence."""

    span: tuple[int, int] | None  # trimmed; None for white space alone
    text: str


class ReferenceSegmenter:
    """Units of the published scanners: parts of sentences of at least 20 tokens.

    NLTK's sentences are cut after every ``,`` and ``;``, parts of more than 50 words at
    line ends, and lines of more than 50 words every 50 words, re-joined with single
    spaces. Parts are merged from the left until each unit has at least 20 tokens, by
    ``count_tokens``; a short last one joins its predecessor. The model reads no white
    space between sentences or before the first, so the joined ``model_text`` is not the
    document; the spans are the document's. The original drops parts of 1,000
    characters or more; here they are cut and kept. A unit that is all white space joins
    the one before it, because a span holds at least one other character.

    NLTK's ``punkt_tab`` is taken from its data path, else from the copy that
    ``llama-index-core`` ships, else downloaded, unless ``local_files_only`` or
    ``HF_HUB_OFFLINE=1``: then ``FileNotFoundError``.
    """

    name = "reference"

    def __init__(
        self, count_tokens: Callable[[str], int], local_files_only: bool = False
    ) -> None:
        self._count_tokens = count_tokens
        self._sentence_spans = load_sentence_tokenizer(
            local_files_only or network_is_off()
        )

    def segment(self, text: str) -> list[Unit]:
        """Cut any string into units, in document order.

        An empty text, or one of white space alone, has none.
        """
        units: list[Unit] = []
        parts: list[_Part] = []
        n_tokens = 0
        for span, part in self._parts(text):
            # The start of the document is trimmed, but its tokens are counted before
            # that, as in the original.
            is_first = not parts and not units
            model_text = part.lstrip(_TRIMMED) if is_first else part
            if not model_text:
                continue
            if n_tokens >= _UNIT_TOKENS:
                _append(units, parts)
                parts = []
                n_tokens = 0
            parts.append(_Part(span, model_text))
            n_tokens += self._count_tokens(replace_surrogates(part))
        if n_tokens < _UNIT_TOKENS and units:
            short_of_tokens = units.pop()
            span = (short_of_tokens.start, short_of_tokens.end)
            parts.insert(0, _Part(span, short_of_tokens.model_text))
        _append(units, parts)
        return units

    def _parts(self, text: str) -> Iterator[_Part]:
        for start, end in _covering(text, self._sentence_spans(text)):
            for clause in _split_after(text, start, end, ",;"):
                yield from _parts_of_clause(text, *clause)


def _parts_of_clause(text: str, start: int, end: int) -> Iterator[_Part]:
    """A clause as one part or, if it has too many words, its lines."""
    if not _is_long(text, start, end):
        yield from _capped(text, start, end, folded=False)
        return
    for line in _split_after(text, start, end, "\n"):
        if _is_long(text, *line):
            for group in _word_groups(text, *line):
                yield from _capped(text, *group, folded=True)
        else:
            yield from _capped(text, *line, folded=False)


def _append(units: list[Unit], parts: list[_Part]) -> None:
    """Make one unit of ``parts``.

    Parts that are all white space join the unit before.
    """
    spans = [part.span for part in parts if part.span is not None]
    model_text = "".join(part.text for part in parts)
    if spans:
        units.append(Unit(spans[0][0], spans[-1][1], model_text))
    elif units:
        before = units.pop()
        units.append(before._replace(model_text=before.model_text + model_text))


def _covering(text: str, spans: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The spans, in order and disjoint.

    Visible characters between two of them go to the second.
    """
    covered = 0
    for start, end in chain(spans, [(len(text), len(text))]):
        visible = trim_span(text, covered, start) if start > covered else None
        begin = max(start, covered) if visible is None else visible[0]
        if begin < end:
            yield begin, end
            covered = end


def _split_after(
    text: str, start: int, end: int, marks: str
) -> Iterator[tuple[int, int]]:
    """Cut a span after each character of ``marks``."""
    for match in re.compile(f"[{marks}]").finditer(text, start, end):
        yield start, match.end()
        start = match.end()
    if start < end:
        yield start, end


def _is_long(text: str, start: int, end: int) -> bool:
    """True if the span holds more words than a part may."""
    for n_words, _ in enumerate(_WORD.finditer(text, start, end), 1):
        if n_words > _PART_WORDS:
            return True
    return False


def _word_groups(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Spans of 50 words each, of which the last holds the others."""
    first = last = start
    for count, word in enumerate(_WORD.finditer(text, start, end)):
        if count % _PART_WORDS == 0:
            if count:
                yield first, last
            first = word.start()
        last = word.end()
    yield first, last


def _capped(text: str, start: int, end: int, *, folded: bool) -> Iterator[_Part]:
    """The span as a part, or as several if the original would drop it for its length.

    With ``folded``, its words are joined by single spaces.
    """
    part = _single_spaced(text[start:end]) if folded else text[start:end]
    span = trim_span(text, start, end)
    if span is None or len(part) < _DROPPED_CHARACTERS:
        yield _Part(span, part)
        return
    cuts = cut_long_span(text, *span, _DROPPED_CHARACTERS - 1)
    for cut_start, cut_end in spans_between((first for first, _ in cuts), end):
        part = text[cut_start:cut_end]
        if folded:
            space_follows = cut_end < end and part[-1].isspace()
            part = _single_spaced(part) + (" " if space_follows else "")
        elif cut_start == span[0]:
            part = text[start:cut_end]
        yield _Part(trim_span(text, cut_start, cut_end), part)


def _single_spaced(text: str) -> str:
    return " ".join(text.split())
