"""Sentences as units, for this project's own checkpoints.

The published scanners' units are imported by name.
"""

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import islice, pairwise

from spscanner_rag.text.languages import told_code
from spscanner_rag.text.sentence_ends import more_starts, shadowed
from spscanner_rag.text.units import (
    Segmenter,
    Unit,
    between,
    cut_long,
    trimmed,
    units_of,
)

__all__ = ["Segmenter", "SentenceSegmenter", "Unit"]

# sentencex gets the text in pieces of this many characters, to bound its memory and its
# time, which is quadratic for some texts (unclosed quotation marks).
_PIECE_CHARACTERS = 8192

# Its time also grows with the quotation marks in a piece: a megabyte of nested ones
# took 37 seconds. So a piece ends after this many marks of the slow kinds, an eighth of
# its characters; in 35 megabytes of real texts, no piece has more than a third of that.
_PIECE_MARKS = 1024
_SLOW_MARKS = re.compile("[`‘’‚‛“”„‟«»‹›「」《》]")  # noqa: RUF001

# Characters that are replaced for sentencex, one for one: its Rust code accepts no lone
# surrogate, and version 1.0.32 panics on white-space characters longer than one byte.
_SHADOW: dict[int, str] = {
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
    **dict.fromkeys(
        (0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000), " "
    ),
    **dict.fromkeys((0x0B, 0x0C, 0x1C, 0x1D, 0x1E, 0x85, 0x2028, 0x2029), "\n"),
}
_BLANK_LINE = re.compile(r"\n[^\S\n]+(?=\n)")
# sentencex does not cut inside quotation marks and brackets, so one that is never
# closed gives a sentence of thousands of characters. Long sentences are cut again with
# these marks masked. A closing mark after a full stop becomes another full stop, so
# that it stays with its sentence.
_PAIRED_MARKS = dict.fromkeys(
    map(ord, "\"'`“”„‟‘’‚‛«»‹›「」『』()[]{}<>（）【】《》〈〉"),  # noqa: RUF001
    "_",
)
_CLOSING_MARKS = re.compile("([.!?…。！？])[\"'”’»›」』)\\]}>）】》〉]+")  # noqa: RUF001
_FALLBACK_SENTENCE_END = re.compile(r"[.!?…。！？]+\s+")  # noqa: RUF001
# "2.1.", "V 9.4." and "- 2M." at the start of a line belong to the sentence that
# follows.
_LIST_MARKER = re.compile(
    r"(?:\A|\n)[ \t]*((?:[-*•–—][ \t]+)?[(\[]?(?:[A-Z]{1,2}[ .]?)?"  # noqa: RUF001
    r"\d{1,3}(?:\.\d{1,3}){0,5}[A-Z>+]?[.)\]]{0,2})[ \t]*\Z"
)
_LIST_MARKER_REACH = 48
# Parts of lines without words, such as the edge of a table, up to the end of a line and
# from its beginning.
_NO_WORDS = re.compile(r"(?:[^\n]|\n(?=[ \t]*\|))[^\w\n]*(?:\n|\Z)")
_NO_WORDS_YET = re.compile(r"\n[^\w\n]*")


def check_segmenter(segmenter: object) -> None:
    """Raise ``ValueError`` unless it is "sentence", "reference" or an object with a ``segment(text)`` method."""
    cuts = not isinstance(segmenter, str | type) and callable(
        getattr(segmenter, "segment", None)
    )
    if not cuts and segmenter not in ("sentence", "reference"):
        raise ValueError(
            f"segmenter is {segmenter!r}; expected 'sentence', 'reference' or an object"
            " with a segment(text) method"
        )


def reference_segmenter(
    count_tokens: Callable[[str], int], local_files_only: bool
) -> Segmenter:
    """The units of the published scanners: `ReferenceSegmenter`, whose module only they need."""
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
    """

    name = "sentence"

    def __init__(self, language: str | None = None, max_characters: int = 1000) -> None:
        if not 16 <= max_characters <= _PIECE_CHARACTERS // 2:
            raise ValueError(
                f"max_characters is {max_characters}, expected 16 to"
                f" {_PIECE_CHARACTERS // 2}; leave it out for the default of 1000"
            )
        if language == "":
            raise ValueError('language is empty, expected a language code such as "en"')
        self.language = language
        self._code = language or "en"
        self.max_characters = max_characters

    def segment(self, text: str) -> list[Unit]:
        """Cut any string into sentences, in document order.

        None for empty or white-space-only text.
        """
        return self.segment_in_pieces(text, lambda: None)

    def segment_in_pieces(
        self, text: str, between_pieces: Callable[[], None]
    ) -> list[Unit]:
        """`segment` that calls ``between_pieces``, which may raise, after at most 8,192 characters each."""
        cut = self.for_text(text)
        return units_of(text, list(cut._spans(text, between_pieces)))

    def for_text(self, text: str) -> "SentenceSegmenter":
        """The segmenter for the language that the words of a text show.

        It may then cut parts of the text.
        """
        return (
            self
            if self.language
            else SentenceSegmenter(told_code(text), self.max_characters)
        )

    def _spans(
        self, text: str, between_pieces: Callable[[], None]
    ) -> Iterator[tuple[int, int]]:
        """Trimmed spans of at most ``max_characters`` characters."""
        for start, end in between(
            self._sentence_starts(text, 0, len(text), between_pieces), len(text)
        ):
            span = trimmed(text, start, end)
            if span is None:
                continue
            if span[1] - span[0] <= self.max_characters // 2:
                yield span
                continue
            starts = self._sentence_starts(text, *span, between_pieces, mask=True)
            for inner_start, inner_end in between(starts, span[1]):
                inner = trimmed(text, inner_start, inner_end)
                if inner is not None:
                    yield from cut_long(text, *inner, self.max_characters)

    def _sentence_starts(
        self,
        text: str,
        begin: int,
        stop: int,
        between_pieces: Callable[[], None],
        mask: bool = False,
    ) -> Iterator[int]:
        """Starts of the sentences of ``text[begin:stop]``, the first at ``begin``, increasing."""
        position = begin
        fresh = True  # whether a sentence starts at `position`
        while position < stop:
            if position > begin:
                between_pieces()
            piece = self._shadow(
                text[position : min(stop, position + _PIECE_CHARACTERS)], mask
            )
            surplus = next(
                islice(_SLOW_MARKS.finditer(piece), _PIECE_MARKS, None), None
            )
            piece = piece if surplus is None else piece[: surplus.start()]
            complete = position + len(piece) >= stop
            if not complete:
                # sentencex takes paragraphs one by one, so a cut here changes nothing.
                paragraph_end = piece.rfind("\n\n", len(piece) // 2) + 2
                if paragraph_end >= 2:
                    piece, complete = piece[:paragraph_end], True
            starts = self._starts_in_piece(piece)
            if complete:
                kept, advance = starts, len(piece)
            elif (
                len(starts) > 1
            ):  # the last sentence may continue after the piece: read it again
                kept, advance = starts[:-1], starts[-1]
            else:
                kept, advance = starts, _last_space(piece)
            yield from (position + start for start in kept[0 if fresh else 1 :])
            fresh = complete or len(starts) > 1
            position += advance

    def _starts_in_piece(self, piece: str) -> list[int]:
        """Starts of the sentences of one piece, the first at 0, strictly increasing."""
        starts = [0]
        found = self._boundaries(piece)
        for boundary in sorted(
            {
                *found,
                *more_starts(piece, [0, *found[found[:1] == [0] :]], self._boundaries),
            }
        ):
            if not starts[-1] < boundary < len(piece):
                continue
            if _NO_WORDS_YET.fullmatch(piece, starts[-1] - 1, boundary):
                continue
            reach = max(starts[-1], boundary - _LIST_MARKER_REACH)
            marker = _LIST_MARKER.search(piece[reach:boundary])
            if marker is not None and (reach == starts[-1] or marker.start() > 0):
                boundary = reach + marker.start(1)
                if not piece[starts[-1] : boundary].strip():
                    continue
            starts.append(boundary)
        parts = pairwise([*starts, len(piece)])
        return [
            0,
            *(
                start
                for start, end in parts
                if start and not _NO_WORDS.fullmatch(piece, start - 1, end)
            ),
        ]

    def _shadow(self, piece: str, mask: bool) -> str:
        """``piece`` in the form that sentencex gets, with the same length."""
        shadow = _BLANK_LINE.sub(
            lambda match: "\n" * len(match[0]), piece.translate(_SHADOW)
        )
        shadow = shadowed(shadow, self._code)
        if mask:
            shadow = _CLOSING_MARKS.sub(lambda match: match[1] * len(match[0]), shadow)
            return shadow.translate(_PAIRED_MARKS)
        return shadow

    def _boundaries(self, piece: str) -> list[int]:
        import sentencex

        try:
            return [
                found["start_index"]
                for found in sentencex.get_sentence_boundaries(self._code, piece)
            ]
        except BaseException as error:
            # A panic of the Rust library is a BaseException that cannot be imported by
            # name.
            if type(error).__name__ != "PanicException":
                raise
            return [match.end() for match in _FALLBACK_SENTENCE_END.finditer(piece)]


def _last_space(piece: str) -> int:
    """Length of ``piece`` up to and including the last white space in its second half.

    Its length if none.
    """
    half = len(piece) // 2
    kept = len(piece[half:].rstrip())
    if kept < len(piece) - half:
        return len(piece)
    words = piece[half:].rsplit(None, 1)
    return (
        len(piece) - len(words[-1])
        if len(words) == 2 or piece[half].isspace()
        else len(piece)
    )
