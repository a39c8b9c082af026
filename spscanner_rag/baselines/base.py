"""Base classes of the baselines, their units, and shared helpers."""

import json
import re
import threading
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.scorers import (
    Cancelled,
    Request,
    Scorer,
    UnitScores,
    check_query,
    never,
    stop_if,
    unit_name_of,
)
from spscanner_rag.system.install_hints import import_extra
from spscanner_rag.text.block_segmentation import segment_blocks
from spscanner_rag.text.blocks import Block
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.spans import spans_between, trim_span
from spscanner_rag.text.surrogates import replace_surrogates
from spscanner_rag.text.units import Segmenter, Unit, units_from_spans

T = TypeVar("T")

PAIRS_AT_ONCE = 4096  # pairs that are tokenized and sorted by length together
Pair = tuple[str, str]
Scores = NDArray[np.float32]

UnitKind = Literal["sentence", "chunk", "passage", "document"]

CHUNK_WORDS = 300  # words per chunk in the paper (section 5.2)
_BEFORE_WORDS = re.compile(r"(?<!\S)(?=\S)")
_CUTS = {
    "passage": re.compile(r"\A|\n[^\S\n]*\n\s*"),
    "document": re.compile(r"\A"),
}  # at blank lines, or nowhere


@dataclass(frozen=True, slots=True)
class CutSegmenter:
    """Cuts a text at the end of every match of a pattern, or of every ``every``-th one.

    Ignores sentences.
    """

    name: str
    pattern: re.Pattern[str]
    every: int = 1

    def segment(self, text: str) -> list[Unit]:
        """Cut ``text`` into units without the white space around them."""
        starts = (
            match.end()
            for match in islice(self.pattern.finditer(text), 0, None, self.every)
        )
        cuts = [trim_span(text, *span) for span in spans_between(starts, len(text))]
        return units_from_spans(text, [span for span in cuts if span is not None])


def segmenter_of(unit: UnitKind | Segmenter) -> Segmenter:
    """Return the segmenter for a kind of unit, such as "chunk:150" (words).

    ``ValueError`` for an unknown kind.
    """
    if not isinstance(unit, str):
        return unit
    if words := re.fullmatch(r"chunk(?::0*([1-9]\d{0,5}))?", unit):
        number = int(words[1] or CHUNK_WORDS)
        name = "chunk" if number == CHUNK_WORDS else f"chunk:{number}"
        return CutSegmenter(name, _BEFORE_WORDS, number)
    if unit == "sentence":
        return SentenceSegmenter()
    if unit not in _CUTS:
        named = ", ".join([*get_args(UnitKind), "chunk:WORDS"])
        raise ValueError(f"unit is {unit!r}; expected one of {named}, or a segmenter")
    return CutSegmenter(unit, _CUTS[unit])


class Baseline(Scorer):
    """Segments a text into units and scores each unit for a query.

    Parameters
    ----------
    unit : str or Segmenter, default "sentence"
        What is scored and returned: "sentence" (cut as by the scanner), "chunk" (300
        words), "passage" (a paragraph), "document" (the whole text), or a segmenter;
        ``ValueError`` for another name.
    """

    def __init__(self, unit: UnitKind | Segmenter = "sentence") -> None:
        self.unit = unit
        self._lock = (
            threading.Lock()
        )  # for parts of subclasses that are not thread-safe

    def raw_scores(self, query: str, text: str, units: Sequence[Unit]) -> Scores:
        """The method's own score of each unit, where higher is better: (units,)."""
        return next(iter(self.raw_scores_many([(query, text, units)])))

    @abstractmethod
    def raw_scores_many(
        self, requests: Sequence[Request], cancelled: Cancelled = never
    ) -> Iterable[Scores]:
        """`raw_scores` of several texts, (units,) each.

        Compute once what does not depend on the text.
        """

    def logits(self, raw: Scores) -> Scores:
        """Finite logits of raw scores, in the same order: (units,).

        Users see their sigmoids.

        The default returns the raw scores, for methods whose own scores are already
        logits.
        """
        return raw

    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> Scores:
        """One logit for each unit, whose span has offsets in ``text``: (units,).

        Raises as `score_units_many`.
        """
        return self.score_units_many([(query, text, units)])[0].logits

    def score_units_many(
        self,
        requests: Sequence[Request],
        *,
        collection: CollectionIndex | None = None,
        cancelled: Cancelled = never,
    ) -> list[UnitScores]:
        """Logits of the units of several texts, in order: (units,) each.

        ``collection`` is used if scores need it.

        ``ValueError`` for an empty query, before any work; ``ScanCancelled`` if
        ``cancelled`` returned True.
        """
        for query, _, _ in requests:
            check_query(query)
        raw = self.raw_scores_among(requests, cancelled, collection)
        scores = []
        for raw_of_text in raw:
            logits = self.logits(raw_of_text) if len(raw_of_text) else raw_of_text
            scores.append(UnitScores(logits))
        return scores

    def raw_scores_among(
        self,
        requests: Sequence[Request],
        cancelled: Cancelled,
        collection: CollectionIndex | None,
    ) -> Iterable[Scores]:
        """`raw_scores_many` of texts of a collection (None: each text is its own collection): (units,) each."""
        among: dict[str, Any] = {"among": collection} if self.uses_collection else {}
        return self.raw_scores_many(requests, cancelled, **among)

    def units_of(self, text: str, blocks: Sequence[Block] = ()) -> list[Unit]:
        """Cut a text into the units to score; ``blocks`` matter for sentences alone."""
        segmenter = segmenter_of(self.unit)
        if blocks and self.unit == "sentence":
            return segment_blocks(text, blocks, segmenter.segment)
        return segmenter.segment(text)

    @property
    def unit_name(self) -> str | None:
        """The name of ``unit``, or of the segmenter that it is."""
        return unit_name_of(self.unit)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, unit={self.unit!r})"


class Pointwise(Baseline):
    """A baseline whose raw score is a logit that depends only on the query and the text of the unit."""

    @abstractmethod
    def score_pairs(self, pairs: Sequence[Pair], cancelled: Cancelled) -> Scores:
        """Logits of pairs of query and unit text: (pairs,).

        Call `stop_if` with ``cancelled`` regularly.
        """

    def score_texts(self, query: str, texts: Sequence[str]) -> Scores:
        """Logits of arbitrary texts: (texts,).

        For NaN or infinity, a ``ValueError`` that quotes the text.
        """
        return self._checked([(query, text) for text in texts], never)

    def raw_scores_many(
        self, requests: Sequence[Request], cancelled: Cancelled = never
    ) -> Iterator[Scores]:
        """The model's logits of `Unit.text_with_headings`, (units,) each.

        A batch may have units of several texts.
        """
        pairs = (
            (query, unit.text_with_headings(text))
            for query, text, units in requests
            for unit in units
        )
        scores = np.empty(0, np.float32)
        for _, _, units in requests:
            stop_if(cancelled)
            while len(scores) < len(units):
                block = list(islice(pairs, PAIRS_AT_ONCE))
                scores = np.concatenate([scores, self._checked(block, cancelled)])
            yield scores[: len(units)]
            scores = scores[len(units) :]

    def _checked(self, pairs: Sequence[Pair], cancelled: Cancelled) -> Scores:
        if not pairs:
            return np.empty(0, np.float32)
        read = [
            (replace_surrogates(query.strip()), replace_surrogates(text))
            for query, text in pairs
        ]
        scores = self.score_pairs(read, cancelled)
        if not np.isfinite(scores).all():
            first = int(np.argmin(np.isfinite(scores)))
            raise ValueError(
                f"{self.name} gives {scores[first]} for {pairs[first][1][:60]!r};"
                " expected a finite number: try dtype='float32', or another model"
            )
        return scores


class TextCache(Generic[T]):
    """Keeps values for the ``keep_texts`` most recently used texts.

    Thread-safe; a pickle has no values.
    """

    def __init__(self, keep_texts: int) -> None:
        check_whole(keep_texts=keep_texts)
        self.keep_texts = keep_texts
        self._kept: OrderedDict[object, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, text: str, units: Sequence[Unit], prepare: Callable[[], T]) -> T:
        """Return the value for a text and its units.

        ``prepare`` computes it if the cache does not have it.
        """
        key = (text, tuple(units))
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        value = (
            prepare()
        )  # no lock, so other threads do not wait; at worst, two compute it
        with self._lock:
            self._kept[key] = value
            while len(self._kept) > self.keep_texts:
                self._kept.popitem(last=False)
        return value

    def __reduce__(self) -> tuple[type["TextCache[T]"], tuple[int]]:
        return TextCache, (self.keep_texts,)


def log_odds(share: NDArray[np.floating]) -> Scores:
    """log(p / (1 - p)) of each share p, which is first clipped to [1e-7, 1 - 1e-7]."""
    clipped = np.clip(share.astype(np.float64), 1e-7, 1 - 1e-7)
    return (np.log(clipped) - np.log1p(-clipped)).astype(np.float32)


def check_whole(least: int = 1, **numbers: object) -> None:
    """Raise ``ValueError`` for the first named argument that is not a whole number of at least ``least``."""
    for name, number in numbers.items():
        if type(number) is not int or number < least:
            raise ValueError(
                f"{name} is {number!r}; expected a whole number of at least {least}"
            )


def load(
    from_pretrained: Callable[[str], T], name: str | Path, *, trusted: bool = False
) -> T:
    """Call a loader with a folder or Hub id; ``ValueError`` if it cannot be read.

    A folder that is not ``trusted`` may name no activation functions but torch's.
    """
    # These modules import torch, which BM25 does not need.
    from spscanner_rag.checkpoint.file_access import is_local_path
    from spscanner_rag.system.forks import compute_in_forks
    from spscanner_rag.text.escaping import first_line

    compute_in_forks()
    folder = Path(name).expanduser()
    if not folder.is_dir() and (
        folder.exists() or isinstance(name, Path) or is_local_path(name)
    ):
        raise ValueError(
            f"{name}: no such folder; expected the folder of a model, or a Hub id"
        )
    if folder.is_dir() and not trusted:
        _check_activations(folder)
    try:
        with no_progress_bars():
            return from_pretrained(str(folder) if folder.is_dir() else str(name))
    except OSError as error:
        reason = first_line(error)
    # Raised outside the except block: the caught error may contain the request with its
    # authorization header.
    raise ValueError(
        f"cannot load {name}: {reason}; pass a local folder, or go online once"
    )


def load_by_library(
    kind: str, model: str | Path, trusted: bool, **options: object
) -> Any:  # noqa: ANN401
    """Load a model by a class of sentence-transformers.

    ``ImportError`` without the package, else as `load`.
    """
    library = import_extra(
        "sentence_transformers", f"{kind} {str(model)!r}", "baselines"
    )
    options["trust_remote_code"] = trusted
    return load(
        lambda path: getattr(library, kind)(path, **options), model, trusted=trusted
    )


def _check_activations(folder: Path) -> None:
    """Raise ``ValueError`` if a model's settings name a function that is not one of torch's activations.

    sentence-transformers imports and calls any function whose name begins with
    "torch.".
    """
    from torch.nn.modules import activation

    known = {"Identity", *activation.__all__}
    for path in sorted({folder / "config.json", *folder.glob("*/config.json")}):
        try:
            settings = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError):
            continue  # the loader reports it
        for name in _activations(settings):
            module, _, function = str(name).rpartition(".")
            if function not in known or not re.fullmatch(
                r"torch\.nn(\.modules\.\w+)?", module
            ):
                raise ValueError(
                    f"{path}: names {name!r:.80} as an activation function; expected"
                    " one of torch.nn: pass trust_remote_code=True if you trust the"
                    " folder"
                )


def _activations(settings: object) -> Iterator[object]:
    if not isinstance(settings, dict):
        return
    names = (
        "activation_function",
        "activation_fn",
        "sbert_ce_default_activation_function",
    )
    for name, value in settings.items():
        # under the first key, transformers has its own names for functions, such as
        # "gelu_new"
        if (
            name in names
            and value is not None
            and (name != names[0] or "." in str(value))
        ):
            yield value
        elif name == "sentence_transformers":
            yield from _activations(value)


@contextmanager
def no_progress_bars() -> Iterator[None]:
    """Hide the progress bars of transformers in the block."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
