"""The quotes and the claims of an answer, each with what it cites."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

import regex

from spscanner_rag.apps.verifying.citation_marks import (
    Citation,
    CitationMark,
    list_lines,
)
from spscanner_rag.text.segmentation import SentenceSegmenter

FEWEST_CLAIM_WORDS: Final = 4

_FENCE = regex.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)", regex.M | regex.S)
_HEADING = regex.compile(r"^[ \t]{0,3}#{1,6}[ \t].*$|^.+\n[ \t]*(?:=+|-{3,})$", regex.M)
_BLOCK_QUOTE = regex.compile(r"(?:^[ \t]*>[^\n]*(?:\n|\Z))+", regex.MULTILINE)
_QUOTE_MARK = regex.compile(r"^[ \t]*>[ \t>]*", regex.MULTILINE)
_BULLET = regex.compile(r"^[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+", regex.MULTILINE)
_MARKUP = regex.compile(r"\*{1,3}|_{2,3}|`+|<[^<>\n]{1,80}>|\]\([^()\s]*\)|\|")
# Possessive, so that unpaired marks cost no more than their line.
_PAIRS = (
    regex.compile(r"“([^“”\n]{1,5000}+(?:\n(?!\n)[^“”\n]{1,5000}+){0,40}+)”"),
    regex.compile(r"„([^„“”\n]{1,5000}+)[“”]"),
    regex.compile(r"[«»]([^«»\n]{1,5000}+)[«»]"),
    regex.compile(r"「([^「」\n]{1,5000}+)」|『([^『』\n]{1,5000}+)』"),
    regex.compile(
        r'(?<![\w"])"(?=\S)([^"\n]{1,5000}+(?:\n(?!\n)[^"\n]{1,5000}+){0,40}+)(?<=\S)"'
    ),
    regex.compile(
        r"(?<!\w)‘(?=\S)([^‘’\n]{1,999}+(?:’(?=\w)[^‘’\n]{1,999}+){0,20}+)(?<=\S)’"
    ),
    regex.compile(
        r"(?<!\w)'(?=\S)([^'\n]{1,999}+(?:'(?=\w)[^'\n]{1,999}+){0,20}+)(?<=\S)'"
    ),
)
_SHORTEST_SINGLE_QUOTED = 3  # words; fewer are mostly apostrophes and names
_WORD = regex.compile(r"\w+")
_QUESTION_END = regex.compile(r"[?？][\"'”’)\]\s]*$")


class AnswerPart(NamedTuple):
    """A quote or a claim of an answer."""

    kind: Literal["quote", "claim"]
    text: str
    start: int  # in the answer
    end: int
    citations: tuple[Citation, ...]


def parts_of_answer(
    answer: str, marks: Sequence[CitationMark]
) -> tuple[list[AnswerPart], list[AnswerPart]]:
    """The quotes and the claims of an answer in Markdown or plain text.

    A quote stands in quotation marks or in a block quote. A claim is a sentence of at
    least three words that is no question and has three words besides its quotes; code,
    headings and the list of citations have none.

    Parameters
    ----------
    answer : str
    marks : sequence of CitationMark
        A mark belongs to what stands before it.

    Examples
    --------
    >>> quotes, claims = parts_of_answer('He said "she is lost". He left in May.', [])
    >>> [quote.text for quote in quotes], [claim.text for claim in claims]
    (['she is lost'], ['He left in May.'])
    """
    plain = _blanked(answer, _FENCE, _HEADING)
    plain = _without(plain, list_lines(plain))
    quote_spans = _quote_spans(plain, marks)
    plain = _without(plain, [(mark.start, mark.end) for mark in marks])
    sentences = _sentence_spans(plain)
    paragraphs = [match.span() for match in _BLOCK_QUOTE.finditer(plain)]
    reader = _CitationReader(plain, sorted([*sentences, *paragraphs]), marks)
    quotes = []
    for start, end in quote_spans:
        text = _QUOTE_MARK.sub("", answer[start:end]).strip()
        citations = reader.after(start, end)
        quotes.append(AnswerPart("quote", text, start, end, citations))
    claims = []
    for start, end in sentences:
        if _claims(plain, start, end, quote_spans):
            text = " ".join(_MARKUP.sub(" ", plain[start:end]).split())
            citations = reader.of_sentence(start)
            claims.append(AnswerPart("claim", text, start, end, citations))
    return quotes, claims


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with ascending spans blanked, so that places stay.

    Line breaks too.
    """
    pieces = []
    at = 0
    for start, end in spans:
        pieces += [text[at:start], _blank(text[max(start, at) : end])]
        at = max(end, at)
    return "".join([*pieces, text[at:]])


def _blank(text: str) -> str:
    return str(regex.sub(r"[^\n]", " ", text))


def _blanked(text: str, *patterns: "regex.Pattern[str]") -> str:
    for pattern in patterns:
        text = pattern.sub(lambda match: _blank(match[0]), text)
    return text


def _quote_spans(plain: str, marks: Sequence[CitationMark]) -> list[tuple[int, int]]:
    """Spans of the quotes, ascending.

    Of nested ones the outer.
    """
    spans = []
    for match in _BLOCK_QUOTE.finditer(plain):
        spans += _paragraphs(plain, *match.span())
    for pattern in _PAIRS:
        is_single = pattern in _PAIRS[-2:]
        for match in pattern.finditer(plain):
            start, end = match.span(match.lastindex or 0)
            n_words = len(_WORD.findall(match[0]))
            if n_words >= (_SHORTEST_SINGLE_QUOTED if is_single else 1):
                spans.append((start, end))
    mark_starts = [mark.start for mark in marks]
    outermost: list[tuple[int, int]] = []
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        is_nested = bool(outermost) and start < outermost[-1][1]
        number = bisect_right(mark_starts, start) - 1
        is_name = number >= 0 and start < marks[number].end
        if not is_nested and not is_name:
            outermost.append((start, end))
    return outermost


def _paragraphs(plain: str, start: int, end: int) -> list[tuple[int, int]]:
    """Spans of the paragraphs of a block quote that have words."""
    spans: list[tuple[int, int]] = []
    first = start
    at = start
    for line in [*plain[start:end].splitlines(keepends=True), ">"]:
        if not _WORD.search(line):
            if _WORD.search(plain[first:at]):
                spans.append((first, at))
            first = at + len(line)
        at += len(line)
    return spans


def _sentence_spans(plain: str) -> list[tuple[int, int]]:
    text = _blanked(plain, _BLOCK_QUOTE, _BULLET)
    return [(unit.start, unit.end) for unit in SentenceSegmenter().segment(text)]


def _claims(
    plain: str, start: int, end: int, quote_spans: Sequence[tuple[int, int]]
) -> bool:
    """Whether a sentence says something besides its quotes, and asks nothing."""
    inside = []
    first = bisect_left(quote_spans, (start, 0))
    for quote_start, quote_end in quote_spans[first:]:
        if quote_start >= end:
            break
        inside.append((quote_start - start, min(quote_end, end) - start))
    besides = _without(plain[start:end], inside)
    n_words = len(_WORD.findall(_MARKUP.sub(" ", besides)))
    is_question = _QUESTION_END.search(plain[start:end]) is not None
    return n_words >= FEWEST_CLAIM_WORDS and not is_question


class _CitationReader:
    """Which marks belong to which sentence or block quote.

    A mark belongs to the one that it stands in, or that it follows with nothing but
    punctuation between.
    """

    def __init__(
        self,
        plain: str,
        sentences: Sequence[tuple[int, int]],
        marks: Sequence[CitationMark],
    ) -> None:
        self._plain = plain
        self._starts = [start for start, _ in sentences]
        self._marks: dict[int, list[CitationMark]] = {}
        for mark in marks:
            number = bisect_right(self._starts, mark.start) - 1
            if number < 0:
                continue
            between = plain[sentences[number][1] : mark.start]
            if not _WORD.search(between) and "\n\n" not in between:
                self._marks.setdefault(number, []).append(mark)

    def of_sentence(self, start: int) -> tuple[Citation, ...]:
        """All citations of the sentence with a character."""
        citations: list[Citation] = []
        for mark in self._of(start):
            citations += mark.citations
        return tuple(dict.fromkeys(citations))

    def after(self, start: int, end: int) -> tuple[Citation, ...]:
        """The citations of a quote: the next marks after it in its sentence."""
        citations: list[Citation] = []
        at = end
        for mark in self._of(start):
            if mark.start < end:
                continue
            if citations and _WORD.search(self._plain[at : mark.start]):
                break
            citations += mark.citations
            at = mark.end
        return tuple(dict.fromkeys(citations))

    def _of(self, start: int) -> list[CitationMark]:
        return self._marks.get(bisect_right(self._starts, start) - 1, [])
