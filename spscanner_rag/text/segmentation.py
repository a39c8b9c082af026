"""Sentences as units, for this project's own checkpoints.

The published scanners' units are cut by `text.reference_segmentation`, whose module
only they need.

How a text becomes sentences, from top to bottom:

1. `SentenceSegmenter.segment` makes units of the spans that the next steps find.
2. Sentences longer than half of ``max_characters`` are cut a second time, with their
   quotation marks and brackets masked; what is then still too long is cut at line ends
   or clauses (`text.spans.cut_long_span`).
3. ``sentencex`` gets the text in parts of bounded size, and its last sentence of a part
   is read again with what follows.
4. In each part, ``sentencex`` finds most starts (`text.sentencex_boundaries`),
   `text.sentence_starts` those that it has no rule for, and markers of lists stay with
   the sentence after them.
"""

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import islice, pairwise

from spscanner_rag.text.false_starts import false_starts
from spscanner_rag.text.languages import language_code
from spscanner_rag.text.sentence_edges import BULLETS
from spscanner_rag.text.sentence_starts import more_starts
from spscanner_rag.text.sentencex_boundaries import (
    boundaries,
    for_sentencex,
    mask_paired_marks,
)
from spscanner_rag.text.spans import cut_long_span, spans_between, trim_span
from spscanner_rag.text.thai_clauses import clause_starts
from spscanner_rag.text.units import Segmenter, Unit, units_from_spans

__all__ = ["Segmenter", "SentenceSegmenter", "Unit"]

# sentencex gets the text in parts of this many characters, to bound its memory and its
# time, which is quadratic for some texts (unclosed quotation marks).
_PART_CHARACTERS = 8192

# Its time also grows with the quotation marks in a part: a megabyte of nested ones
# took 37 seconds. So a part ends after this many marks of the slow kinds, an eighth of
# its characters; in 35 megabytes of real texts, no part has more than a third of that.
_PART_MARKS = 1024
_SLOW_MARKS = re.compile("[`‘’‚‛“”„‟«»‹›「」《》]")  # noqa: RUF001

# "2.1.", "V 9.4.", "- 2M.", "**8.", "II." and "ARTICLE II." at the start of a line
# belong to the sentence that follows.
_LIST_MARKER = re.compile(
    rf"(?:\A|\n)[ \t]*((?:[{BULLETS}][ \t]+)?(?:\*\*|__)?(?:"
    r"[(\[]?(?:[A-Z]{1,2}[ .]?)?"
    r"\d{1,3}(?:\.\d{1,3}){0,5}[A-Z>+]?[.)\]]{0,4}(?:\*\*|__)?"
    r"|(?:(?:ARTICLE|SECTION|CHAPTER|PART)[ ]+)?[IVXLC]{1,6}[.)]))[ \t]*\Z"
)
_LIST_MARKER_REACH = 48
# An empty line that a mail quotes belongs to the next sentence.
_QUOTE_MARKS = "> \t\r\n"
# Parts of lines without words, such as the edge of a table, up to the end of a line and
# from its beginning.
_NO_WORDS = re.compile(r"(?:[^\n]|\n(?=[ \t]*\|))[^\w\n]*(?:\n|\Z)")
_NO_WORDS_YET = re.compile(r"\n[^\w\n]*")


def check_segmenter(segmenter: object) -> None:
    """Raise ``ValueError`` for what is neither a segmenter nor the name of one.

    The names are "sentence" and "reference"; a segmenter is an object with a
    ``segment(text)`` method.
    """
    if segmenter in ("sentence", "reference"):
        return
    is_object = not isinstance(segmenter, str | type)
    if is_object and callable(getattr(segmenter, "segment", None)):
        return
    raise ValueError(
        f"segmenter is {segmenter!r}; expected 'sentence', 'reference' or an object"
        " with a segment(text) method"
    )


def reference_segmenter(
    count_tokens: Callable[[str], int], local_files_only: bool
) -> Segmenter:
    """Make the segmenter of the published scanners, whose module only they need."""
    module = import_module("spscanner_rag.text.reference_segmentation")
    segmenter: Segmenter = module.ReferenceSegmenter(count_tokens, local_files_only)
    return segmenter


class SentenceSegmenter:
    """Sentences by ``sentencex``, in linear time.

    The joined units are the document, character for character.

    Parameters
    ----------
    language : str, optional
        A code such as "en". Default: found from the words of each text. For a code that
        it does not know, ``sentencex`` uses a general rule.
    max_characters : int, default 1000
        Longer sentences are cut at line ends, else ends of clauses, else other white
        space, else between characters that do not combine. Sentences longer than half
        of this are first cut where ``sentencex`` cuts them when their quotation marks
        and brackets are masked.

    Raises
    ------
    ValueError
        If ``max_characters`` is below 16 or above 4096, or ``language`` is empty.

    Examples
    --------
    >>> text = "Dr. Smith signed it on 14 May. Nobody else did."
    >>> for unit in SentenceSegmenter().segment(text):
    ...     print(unit.start, unit.end, text[unit.start : unit.end])
    0 30 Dr. Smith signed it on 14 May.
    31 47 Nobody else did.
    """

    name = "sentence"

    def __init__(self, language: str | None = None, max_characters: int = 1000) -> None:
        if not 16 <= max_characters <= _PART_CHARACTERS // 2:
            raise ValueError(
                f"max_characters is {max_characters}, expected 16 to"
                f" {_PART_CHARACTERS // 2}; leave it out for the default of 1000"
            )
        if language == "":
            raise ValueError('language is empty, expected a language code such as "en"')
        self.language = language
        self._code = language or "en"
        self.max_characters = max_characters

    def segment(self, text: str) -> list[Unit]:
        """Cut any string into sentences, in document order.

        An empty text, or one of white space alone, has none.
        """
        return self.segment_in_parts(text, lambda: None)

    def segment_in_parts(
        self, text: str, between_parts: Callable[[], None]
    ) -> list[Unit]:
        """Do what `segment` does, and call a function in between.

        ``between_parts`` is called after at most 8,192 characters each time. It may
        raise, which ends the cutting.
        """
        if self.language is None:
            return self.for_text(text).segment_in_parts(text, between_parts)
        return units_from_spans(text, list(self._spans(text, between_parts)))

    def for_text(self, text: str) -> "SentenceSegmenter":
        """The segmenter for the language that the words of a text show.

        It may then cut parts of the text.
        """
        if self.language:
            return self
        return SentenceSegmenter(language_code(text), self.max_characters)

    def _spans(
        self, text: str, between_parts: Callable[[], None]
    ) -> Iterator[tuple[int, int]]:
        """Trimmed spans of at most ``max_characters`` characters."""
        starts = self._sentence_starts(text, 0, len(text), between_parts)
        first_mark = -1  # of an empty line of a quotation
        for start, end in spans_between(starts, len(text)):
            if first_mark < 0:
                first_mark = start
            if end < len(text) and not text[start:end].strip(_QUOTE_MARKS):
                continue
            sentence = trim_span(text, first_mark, end)
            first_mark = -1
            if sentence is None:
                continue
            if sentence[1] - sentence[0] <= self.max_characters // 2:
                yield sentence
            else:
                yield from self._cut_long_sentence(text, *sentence, between_parts)

    def _cut_long_sentence(
        self, text: str, start: int, end: int, between_parts: Callable[[], None]
    ) -> Iterator[tuple[int, int]]:
        """Cut a sentence again, with its quotation marks and brackets masked."""
        starts = self._sentence_starts(text, start, end, between_parts, mask=True)
        for inner_start, inner_end in spans_between(starts, end):
            inner = trim_span(text, inner_start, inner_end)
            if inner is not None:
                yield from cut_long_span(text, *inner, self.max_characters)

    def _sentence_starts(
        self,
        text: str,
        begin: int,
        stop: int,
        between_parts: Callable[[], None],
        mask: bool = False,
    ) -> Iterator[int]:
        """Starts of the sentences of ``text[begin:stop]``, increasing.

        The first is ``begin``.
        """
        position = begin
        sentence_starts_here = True  # at `position`
        while position < stop:
            if position > begin:
                between_parts()
            part = self._part(text, position, stop, mask)
            complete = position + len(part) >= stop
            if not complete:
                # sentencex takes paragraphs one by one, so a cut here changes nothing.
                paragraph_end = part.rfind("\n\n", len(part) // 2) + 2
                if paragraph_end >= 2:
                    part = part[:paragraph_end]
                    complete = True
            starts = self._starts_in_part(part)
            several = len(starts) > 1
            if complete:
                advance = len(part)
            elif several:
                # The last sentence may continue after the part: it is read again.
                advance = starts.pop()
            else:
                advance = _end_of_last_space(part)
            for start in starts if sentence_starts_here else starts[1:]:
                yield position + start
            sentence_starts_here = complete or several
            position += advance

    def _part(self, text: str, position: int, stop: int, mask: bool) -> str:
        """What ``sentencex`` gets from ``position`` on, of the same length."""
        end = min(stop, position + _PART_CHARACTERS)
        part = for_sentencex(text[position:end], self._code)
        if mask:
            part = mask_paired_marks(part)
        surplus_mark = next(islice(_SLOW_MARKS.finditer(part), _PART_MARKS, None), None)
        if surplus_mark is None:
            return part
        return part[: surplus_mark.start()]

    def _starts_in_part(self, part: str) -> list[int]:
        """Starts of the sentences of one part, the first at 0, strictly increasing."""
        starts = [0]
        for start in self._candidates(part):
            if not starts[-1] < start < len(part):
                continue
            if _NO_WORDS_YET.fullmatch(part, starts[-1] - 1, start):
                continue
            start_with_marker = _before_list_marker(part, starts[-1], start)
            if start_with_marker is not None:
                starts.append(start_with_marker)
        with_words = [0]
        for start, end in pairwise([*starts, len(part)]):
            if start and not _NO_WORDS.fullmatch(part, start - 1, end):
                with_words.append(start)
        false = set(false_starts(part, with_words))
        return [start for start in with_words if start not in false]

    def _candidates(self, part: str) -> list[int]:
        """All positions of a part where a sentence may start, increasing."""

        def cut(text: str) -> list[int]:
            return boundaries(text, self._code)

        starts = cut(part)
        from_zero = starts if starts[:1] == [0] else [0, *starts]
        all_starts = sorted({*from_zero, *more_starts(part, from_zero, cut)})
        return sorted({*all_starts, *clause_starts(part, all_starts)})


def _before_list_marker(part: str, last_start: int, start: int) -> int | None:
    """Where a sentence begins whose list marker stands before ``start``.

    It is ``start`` without such a marker, and None if the marker is all that there is
    since the start of the sentence before.
    """
    reach = max(last_start, start - _LIST_MARKER_REACH)
    marker = _LIST_MARKER.search(part[reach:start])
    if marker is None or (reach > last_start and marker.start() == 0):
        return start
    marker_start = reach + marker.start(1)
    if not part[last_start:marker_start].strip():
        return None
    return marker_start


def _end_of_last_space(part: str) -> int:
    """The end of the last white space in the second half of a part.

    It is the part's length if there is none.
    """
    half = len(part) // 2
    if part[-1].isspace():
        return len(part)
    words = part[half:].rsplit(None, 1)
    if len(words) == 2 or part[half].isspace():
        return len(part) - len(words[-1])
    return len(part)
