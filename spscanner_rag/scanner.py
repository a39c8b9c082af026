"""The scanner: a question and a whole text in, a score for every sentence out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from spscanner_rag.checkpoint import Checkpoint, load_checkpoint
from spscanner_rag.devices import Choice, choose
from spscanner_rag.mamba2.reader import TokenSequence, read_logits
from spscanner_rag.reading import PreparedText, QueryOnText, Reading
from spscanner_rag.results import ScanResult
from spscanner_rag.segmentation import ReferenceSegmenter, SentenceSegmenter
from spscanner_rag.token_stream import tokenize_question
from spscanner_rag.units import Segmenter, Unit, readable
from spscanner_rag.windows import average_logits, require_question_fits, window_ranges

SEGMENT_TOKENS = {"cpu": 512, "mps": 4096, "cuda": 32768}
"""Tokens per forward pass by kind of device: enough to keep it busy, few enough to stay in its memory, on
a CPU in its caches."""

PAIRS_AHEAD = 16
"""`Scanner.scan_many` prepares pairs until they fill so many passes, then reads them together."""

Progress = Callable[[int, int], None]


class ScanCancelled(Exception):  # noqa: N818 - nothing went wrong
    """The caller asked to stop; nothing was returned."""


class _CheckpointDefault:
    """Stands for "as the checkpoint says", where None has a meaning of its own."""

    def __repr__(self) -> str:
        return "CHECKPOINT_DEFAULT"


CHECKPOINT_DEFAULT = _CheckpointDefault()


class Scanner:
    """Scores every sentence of a text for a question, in one pass over the text.

    One scanner may be used from several threads at once.

    Parameters
    ----------
    checkpoint : Checkpoint
        As loaded by `spscanner_rag.checkpoint.load_checkpoint`. Most callers want `from_pretrained`.
    window_tokens : int or None, optional
        Read the text in windows of this many tokens, half overlapping, and average their logits; None
        reads any length in one pass. Default: as the checkpoint says.
    segment_tokens : int, optional
        Tokens per forward pass. Bounds memory; changes rounding only. Default: by device.
    segmenter : Segmenter or str, optional
        Anything with a ``segment(text)`` method, or "sentence" or "reference". Default: the checkpoint's.
    choice : Choice, optional
        Device and dtype with the reasons for them, for `spscanner info`.
    local_files_only : bool, default False
        Never download NLTK's sentence model, which the reference segmenter needs.

    Raises
    ------
    ValueError
        For a segmenter that is none, or a number of tokens below 1.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        *,
        window_tokens: int | _CheckpointDefault | None = CHECKPOINT_DEFAULT,
        segment_tokens: int | None = None,
        segmenter: Segmenter | str | None = None,
        choice: Choice | None = None,
        local_files_only: bool = False,
    ) -> None:
        self.checkpoint = checkpoint
        model, settings = checkpoint.model, checkpoint.settings
        self.device, self.dtype = model.device, model.dtype
        self.device_reason = choice.device_reason if choice else "where the model was loaded"
        self.dtype_reason = choice.dtype_reason if choice else "as the model was loaded"
        self.backend = "torch"
        if isinstance(window_tokens, _CheckpointDefault):
            window_tokens = settings.window_tokens
        self.window_tokens = _at_least_one("window_tokens", window_tokens)
        default = SEGMENT_TOKENS.get(self.device.type, SEGMENT_TOKENS["cpu"])
        self.segment_tokens = _at_least_one("segment_tokens", segment_tokens) or default
        self.reading = Reading(
            tokenizer=checkpoint.tokenizer,
            segmenter=self._segmenter(
                settings.segmenter if segmenter is None else segmenter, local_files_only
            ),
            end_rule="contained" if settings.segmenter == "reference" else "last_character",
            reanchor_tokens=settings.reanchor_tokens,
            lexical_match=settings.match,
            lexical_prior=settings.prior,
        )

    @classmethod
    def from_pretrained(
        cls,
        model: str | Path | None = None,
        *,
        device: str | torch.device = "auto",
        dtype: str | torch.dtype = "auto",
        backend: Literal["auto", "torch"] = "auto",
        window_tokens: int | _CheckpointDefault | None = CHECKPOINT_DEFAULT,
        segment_tokens: int | None = None,
        segmenter: Segmenter | str | None = None,
        tokenizer: Tokenizer | str | Path | None = None,
        revision: str | None = None,
        token: str | bool | None = None,
        cache_dir: str | Path | None = None,
        local_files_only: bool = False,
    ) -> Scanner:
        """Load a scanner.

        Parameters
        ----------
        model : str or Path, optional
            A local folder or a Hub id such as "MambaRetriever/SPScanner-130m". Default: the checkpoint that
            comes with the package, without any network.
        device : str or torch.device, default "auto"
            "auto" takes CUDA, then MPS, then the CPU.
        dtype : str or torch.dtype, default "auto"
            "float32" or "bfloat16"; "auto" takes bfloat16 where the hardware multiplies it natively.
        backend : "auto" or "torch", default "auto"
            What computes the state-space operator.
        window_tokens, segment_tokens, segmenter
            As for `Scanner`.
        tokenizer : tokenizers.Tokenizer, str or Path, optional
            Instead of the checkpoint's own: a tokenizer, its file or folder, or a Hub id.
        revision : str, optional
            Branch, tag or commit on the Hub.
        token : str or bool, optional
            Access token for the Hub; True for the one stored on this machine.
        cache_dir : str or Path, optional
            Where downloads are kept. Default: huggingface_hub's cache.
        local_files_only : bool, default False
            Never use the network.

        Raises
        ------
        CheckpointError
            If the checkpoint is not there or not sound.
        ValueError
            For an argument that is out of range, or a device that is not there.
        """
        if backend not in ("auto", "torch"):
            raise ValueError(f"backend is {backend!r}; expected 'auto' or 'torch'")
        _at_least_one("segment_tokens", segment_tokens)
        if not isinstance(window_tokens, _CheckpointDefault):
            _at_least_one("window_tokens", window_tokens)
        _check_segmenter(segmenter)
        choice = choose(device, dtype)
        checkpoint = load_checkpoint(
            model,
            device=choice.device,
            dtype=choice.dtype,
            tokenizer=tokenizer,
            revision=revision,
            token=token,
            cache_dir=cache_dir,
            local_files_only=local_files_only,
        )
        return cls(
            checkpoint,
            window_tokens=window_tokens,
            segment_tokens=segment_tokens,
            segmenter=segmenter,
            choice=choice,
            local_files_only=local_files_only,
        )

    def __repr__(self) -> str:
        dtype = str(self.dtype).removeprefix("torch.")
        return f"Scanner({self.checkpoint.source!r}, device={str(self.device)!r}, dtype={dtype!r})"

    def scan(
        self,
        query: str,
        text: str,
        *,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> ScanResult:
        """Score every sentence of a text.

        Parameters
        ----------
        query : str
            The question; not empty.
        text : str
            The whole document, of any length.
        progress : callable, optional
            Called with (tokens done, tokens in all) after every forward pass.
        cancelled : callable, optional
            Asked after every forward pass; True ends the scan.

        Returns
        -------
        ScanResult
            Without sentences if the text is empty or white space.

        Raises
        ------
        ValueError
            If the query is empty, or longer than a window.
        TypeError
            If query or text is not a string.
        ScanCancelled
            If ``cancelled`` returned True.
        """
        return self.scan_many([(query, text)], progress=progress, cancelled=cancelled)[0]

    def scan_many(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        progress: Progress | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> list[ScanResult]:
        """Scan several pairs of question and text; pairs of similar length share a forward pass.

        Parameters
        ----------
        pairs : iterable of (query, text)
            Consecutive pairs on one text cut and tokenize it once.
        progress : callable, optional
            Called with (tokens done, tokens in all); the total is that of the pairs prepared so far.
        cancelled : callable, optional
            As for `scan`.

        Returns
        -------
        list of ScanResult
            In the order of the pairs.

        Raises
        ------
        ValueError, TypeError, ScanCancelled
            As for `scan`; all pairs are checked before any is read.
        """
        pairs = list(pairs)
        for pair in pairs:
            self._check_pair(*_as_pair(pair))
        meter = _Meter(progress, cancelled)
        count_tokens = partial(_count_tokens, self.checkpoint.tokenizer)  # a kept result keeps no model alive
        results: list[ScanResult] = []
        for scans in self._ahead(self._prepared(pairs)):
            for scan, logits in zip(scans, self._logits(scans, meter), strict=True):
                results.append(
                    ScanResult(scan.query, scan.text, scan.cut.starts, scan.cut.ends, logits, count_tokens)
                )
        return results

    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
        """Logits of given units: (units,). The units' ``model_text`` is what is read of the text.

        Raises
        ------
        ValueError, TypeError
            As for `scan`.
        """
        self._check_pair(query, text)
        cut = self.reading.prepare(text, units)
        scan = self._scan(query, text, cut)
        return next(iter(self._logits([scan], _Meter(None, None))))

    def count_tokens(self, text: str) -> int:
        """Tokens of a text by this scanner's own tokenizer, without special tokens."""
        return _count_tokens(self.checkpoint.tokenizer, text)

    def _segmenter(self, segmenter: Segmenter | str, local_files_only: bool) -> Segmenter:
        _check_segmenter(segmenter)
        if not isinstance(segmenter, str):
            return segmenter
        if segmenter == "reference":
            return ReferenceSegmenter(self.count_tokens, local_files_only)
        return SentenceSegmenter()

    def _check_pair(self, query: object, text: object) -> None:
        for name, value in (("query", query), ("text", text)):
            if not isinstance(value, str):
                raise TypeError(f"{name} is {type(value).__name__}; expected a string (decode bytes first)")
        if not str(query).strip():
            raise ValueError("query is empty; expected a question or key words")
        if self.window_tokens is not None:
            question_ids = tokenize_question(self.checkpoint.tokenizer, str(query))
            require_question_fits(len(question_ids), self.window_tokens)

    def _prepared(self, pairs: list[tuple[str, str]]) -> Iterator[_Scan]:
        cut, cut_text = None, None
        for query, text in pairs:
            if cut is None or text is not cut_text:
                cut, cut_text = self.reading.prepare(text), text
            yield self._scan(query, text, cut)

    def _scan(self, query: str, text: str, cut: PreparedText) -> _Scan:
        laid = self.reading.lay(query, cut)
        if not cut.units:
            return _Scan(query, text, cut, laid, [])
        if self.window_tokens is None or self.window_tokens >= len(cut.tokens.input_ids):
            return _Scan(query, text, cut, laid, [(0, len(cut.units) - 1)])
        return _Scan(query, text, cut, laid, window_ranges(cut.tokens.unit_ends, self.window_tokens))

    def _ahead(self, scans: Iterator[_Scan]) -> Iterator[list[_Scan]]:
        """Scans in runs that fill several forward passes, so that similar lengths can be read together."""
        run: list[_Scan] = []
        tokens = 0
        for scan in scans:
            run.append(scan)
            tokens += len(scan.cut.tokens.input_ids)
            if tokens >= PAIRS_AHEAD * self.segment_tokens:
                yield run
                run, tokens = [], 0
        if run:
            yield run

    def _logits(self, scans: list[_Scan], meter: _Meter) -> Iterator[NDArray[np.float32]]:
        sequences = [
            self.reading.sequence(scan.laid, scan.cut, first, last)
            for scan in scans
            for first, last in scan.windows
        ]
        meter.expect(sequences)
        read = iter(read_logits(self.checkpoint.model, sequences, self.segment_tokens, meter.after_step))
        for scan in scans:
            logits = [next(read) for _ in scan.windows]
            yield average_logits(scan.windows, logits, len(scan.cut.units))


class _Scan(NamedTuple):
    """A pair, ready to be read."""

    query: str
    text: str
    cut: PreparedText
    laid: QueryOnText
    windows: list[tuple[int, int]]  # first and last unit of each, inclusive


@dataclass(slots=True)
class _Meter:
    """Counts tokens for the caller's progress, and asks whether to go on."""

    progress: Progress | None
    cancelled: Callable[[], bool] | None
    done: int = 0
    total: int = 0

    def expect(self, sequences: Sequence[TokenSequence]) -> None:
        self.total += sum(len(sequence.input_ids) for sequence in sequences)

    def after_step(self, tokens: int) -> None:
        self.done += tokens
        if self.progress is not None:
            self.progress(self.done, self.total)
        if self.cancelled is not None and self.cancelled():
            raise ScanCancelled(f"cancelled after {self.done} of {self.total} tokens")


def _as_pair(pair: object) -> tuple[object, object]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(f"a pair is {pair!r:.60}; expected (query, text)")
    return pair[0], pair[1]


def _check_segmenter(segmenter: object) -> None:
    if segmenter is None or (isinstance(segmenter, str) and segmenter in ("sentence", "reference")):
        return
    is_object = not isinstance(segmenter, str | type) and callable(getattr(segmenter, "segment", None))
    if not is_object:
        raise ValueError(
            f"segmenter is {segmenter!r}; expected 'sentence', 'reference' or an object with a segment(text)"
            " method"
        )


def _count_tokens(tokenizer: Tokenizer, text: str) -> int:
    return len(tokenizer.encode(readable(text), add_special_tokens=False).ids)


def _at_least_one(name: str, value: int | None) -> int | None:
    if value is not None and (type(value) is not int or value < 1):
        raise ValueError(f"{name} is {value!r}; expected a whole number of at least 1")
    return value
