"""The units of the published scanners, cut as in ``document_tokenization.py`` of the original.

Source: https://github.com/MambaRetriever/MambaRetriever, commit 86a8eb4.
"""

import contextlib
import functools
import importlib.util
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from spscanner_rag.text.token_counts import network_is_off
from spscanner_rag.text.units import Unit, between, cut_long, readable, trimmed

if TYPE_CHECKING:
    from nltk.tokenize.punkt import PunktParameters

# The original's constants: words per piece, tokens per unit, and the length at which it
# drops a piece.
_PIECE_WORDS = 50
_UNIT_TOKENS = 20
_DROPPED_CHARACTERS = 1000
# What it trims from the start of a document: not every white-space character.
_TRIMMED = " \n\xa0\r\t\x0c\u2003"

# Characters around a full stop that NLTK gets to see: more than it ever needs.
_CONTEXT_CHARACTERS = 2000

_WORD = re.compile(r"\S+")
_MODEL = "tokenizers/punkt_tab/english/"


class _Piece(NamedTuple):
    """A part of a sentence: its trimmed span in the text (None: white space only) and its string."""

    span: tuple[int, int] | None
    text: str


class ReferenceSegmenter:
    """Units of the published scanners: pieces of sentences, merged until they hold 20 tokens.

    NLTK's sentences are cut after every ``,`` and ``;``, pieces of more than 50 words
    at line ends, and lines of more than 50 words every 50 words, re-joined with single
    spaces. Pieces are merged from the left until each unit has at least 20 tokens, by
    ``count_tokens``; a short last one joins its predecessor. The model reads no white
    space between sentences or before the first, so the joined ``model_text`` is not the
    document; the spans are the document's. The original drops pieces of 1,000
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
        self._sentence_spans = _load_sentence_tokenizer(
            local_files_only or network_is_off()
        )

    def segment(self, text: str) -> list[Unit]:
        """Cut any string into units, in document order.

        None for empty or white-space-only text.
        """
        units: list[Unit] = []
        pieces: list[_Piece] = []
        tokens = 0
        for span, string in self._pieces(text):
            # the start of the document is trimmed, but its tokens are counted before
            # trimming, as in the original
            kept = string if pieces or units else string.lstrip(_TRIMMED)
            if not kept:
                continue
            if tokens >= _UNIT_TOKENS:
                _append(units, pieces)
                pieces, tokens = [], 0
            pieces.append(_Piece(span, kept))
            tokens += self._count_tokens(readable(string))
        if tokens < _UNIT_TOKENS and units:
            pieces.insert(
                0, _Piece((units[-1].start, units[-1].end), units.pop().model_text)
            )
        _append(units, pieces)
        return units

    def _pieces(self, text: str) -> Iterator[_Piece]:
        for start, end in _covering(text, self._sentence_spans(text)):
            for clause in _split_after(text, start, end, ",;"):
                cut = _is_long(text, *clause)
                for line in _split_after(text, *clause, "\n") if cut else [clause]:
                    folded = cut and _is_long(text, *line)
                    for span in _word_groups(text, *line) if folded else [line]:
                        yield from _capped(text, *span, folded)


def _append(units: list[Unit], pieces: list[_Piece]) -> None:
    """Make one unit of ``pieces``.

    Pieces that are all white space join the unit before.
    """
    spans = [piece.span for piece in pieces if piece.span is not None]
    model_text = "".join(piece.text for piece in pieces)
    if spans:
        units.append(Unit(spans[0][0], spans[-1][1], model_text))
    elif units:
        units[-1] = units[-1]._replace(model_text=units[-1].model_text + model_text)


def _covering(text: str, spans: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The spans, in order and disjoint.

    Visible characters between two of them go to the second.
    """
    covered = 0
    for start, end in chain(spans, [(len(text), len(text))]):
        gap = trimmed(text, covered, start) if start > covered else None
        start = max(start, covered) if gap is None else gap[0]
        if start < end:
            yield start, end
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
    """True if the span holds more words than a piece may."""
    return any(
        count > _PIECE_WORDS
        for count, _ in enumerate(_WORD.finditer(text, start, end), 1)
    )


def _word_groups(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Spans of 50 words each; the last one holds the rest."""
    first = last = start
    for count, word in enumerate(_WORD.finditer(text, start, end)):
        if count % _PIECE_WORDS == 0:
            if count:
                yield first, last
            first = word.start()
        last = word.end()
    yield first, last


def _capped(text: str, start: int, end: int, folded: bool) -> Iterator[_Piece]:
    """The span as a piece, or as several where the original would drop it for its length."""
    string = " ".join(text[start:end].split()) if folded else text[start:end]
    span = trimmed(text, start, end)
    if span is None or len(string) < _DROPPED_CHARACTERS:
        yield _Piece(span, string)
        return
    starts = (cut for cut, _ in cut_long(text, *span, _DROPPED_CHARACTERS - 1))
    for cut_start, cut_end in between(starts, end):
        part = text[cut_start:cut_end]
        if folded:
            part = " ".join(part.split()) + (
                " " if cut_end < end and part[-1].isspace() else ""
            )
        elif cut_start == span[0]:
            part = text[start:cut_end]
        yield _Piece(trimmed(text, cut_start, cut_end), part)


@functools.cache
def _load_sentence_tokenizer(
    local_files_only: bool,
) -> Callable[[str], Iterator[tuple[int, int]]]:
    import nltk
    from nltk.tokenize.punkt import PunktSentenceTokenizer

    parameters, cause = _parameters(), None
    if parameters is None and not local_files_only:
        silent = io.StringIO()
        try:
            with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
                nltk.download("punkt_tab", quiet=True, print_error_to=silent)
        except Exception as error:  # a network can fail in many ways
            cause = error
        parameters = _parameters()
    if parameters is None:
        off = "downloads are off (local_files_only, or HF_HUB_OFFLINE)"
        tried = off if local_files_only else "its download failed"
        raise FileNotFoundError(
            f"NLTK's sentence model punkt_tab is not installed and {tried}; run "
            "`python -m nltk.downloader punkt_tab` once with a network, or "
            "`pip install llama-index-core`, which includes it"
        ) from cause
    parameters.ortho_context = Counter(
        parameters.ortho_context
    )  # looking up a word adds no entry for it
    tokenizer: Any = PunktSentenceTokenizer(parameters, lang_vars=_patient_rules())
    spans: Callable[[str], Iterator[tuple[int, int]]] = tokenizer.span_tokenize
    return spans


def _patient_rules() -> object:
    """NLTK's rules without their time limit of five seconds."""
    from nltk import redos
    from nltk.tokenize.punkt import PunktLanguageVars

    class Rules(PunktLanguageVars):  # type: ignore[misc]
        def period_context_re(self) -> object:
            return redos.compile(super().period_context_re(), timeout=None)

        def word_tokenize(self, s: str) -> list[str]:
            # `s` is the text around a full stop. It is shortened because the time limit
            # still applies here.
            half = _CONTEXT_CHARACTERS // 2
            words: list[str] = super().word_tokenize(
                s if len(s) <= 2 * half else s[:half] + s[-half:]
            )
            return words

    return Rules()


def _parameters() -> "PunktParameters | None":
    """The sentence model in NLTK's data path, else the copy in llama-index-core.

    NLTK opens nothing outside its path, so for a moment the folder of that copy is in
    it.
    """
    import nltk.data
    from nltk.tokenize.punkt import load_punkt_params

    path: list[str] = nltk.data.path
    folders = []
    with contextlib.suppress(ModuleNotFoundError):
        package = importlib.util.find_spec("llama_index.core")
        if package is not None and package.origin is not None:
            folders = [str(Path(package.origin).parent / "_static" / "nltk_cache")]
    nltk.data.path = [*path, *folders]
    try:
        return load_punkt_params(nltk.data.find(_MODEL))
    except (LookupError, OSError):
        return None
    finally:
        nltk.data.path = path
