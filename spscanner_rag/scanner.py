"""`Scanner`, the class that users call: it reads a question and a whole text, and scores every sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from spscanner_rag.checkpoint import Checkpoint, load_checkpoint, locate
from spscanner_rag.checkpoint.settings import CHECKPOINT_DEFAULT, CheckpointDefault
from spscanner_rag.checkpoint.tokenizer_file import TOKENIZER, read_tokenizer
from spscanner_rag.mamba2.backends import choose_backend
from spscanner_rag.mamba2.int8_linear import projection_dtype
from spscanner_rag.results import ScanResult
from spscanner_rag.scan.devices import Choice, choose, default_segment_tokens
from spscanner_rag.scan.pipeline import Meter, Pipeline
from spscanner_rag.scan.prepare import Reading
from spscanner_rag.scorers import Cancelled, Progress, ScanCancelled
from spscanner_rag.text.segmentation import ReferenceSegmenter, SentenceSegmenter, check_segmenter
from spscanner_rag.text.token_counts import CountTokens
from spscanner_rag.text.tokenization import token_counter
from spscanner_rag.text.units import Segmenter, Unit

__all__ = ["CHECKPOINT_DEFAULT", "ScanCancelled", "Scanner", "bundled_token_counter"]


class Scanner:
    """Scores every sentence of a text for a question, in one pass over the text.

    One scanner may be used from several threads at once.

    Parameters
    ----------
    checkpoint : Checkpoint
        From `spscanner_rag.checkpoint.load_checkpoint`. Most callers want `from_pretrained`.
    window_tokens : int or None, optional
        Read the text in windows of this many tokens, half overlapping, and average their logits; None
        reads any length in one pass. Default: as the checkpoint says.
    segment_tokens : int, optional
        Tokens per forward pass. Bounds memory; changes rounding only. Default: by device, on a CPU also by the
        model's width. Lowered to the most that the backend's kernels can index.
    segmenter : Segmenter or str, optional
        Anything with a ``segment(text)`` method, or "sentence" or "reference". Default: the checkpoint's.
    choice : Choice, optional
        Device and dtype with the reasons for them, for `spscanner info`.
    backend_reason : str, optional
        Why the model uses the kernels that it has, for `spscanner info`.
    local_files_only : bool, default False
        Never download NLTK's sentence model, which the reference segmenter needs.

    Raises
    ------
    ValueError
        For an unknown segmenter, or a number of tokens below 1.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        *,
        window_tokens: int | CheckpointDefault | None = CHECKPOINT_DEFAULT,
        segment_tokens: int | None = None,
        segmenter: Segmenter | str | None = None,
        choice: Choice | None = None,
        backend_reason: str = "as the model was loaded",
        local_files_only: bool = False,
    ) -> None:
        _check_options(window_tokens, segment_tokens, segmenter)
        self.checkpoint = checkpoint
        model, settings = checkpoint.model, checkpoint.settings
        self.device, self.dtype = model.device, projection_dtype(model)
        self.device_reason = choice.device_reason if choice else "where the model was loaded"
        self.dtype_reason = choice.dtype_reason if choice else "as the model was loaded"
        self.backend, self.backend_reason = model.kernels.name, backend_reason
        if isinstance(window_tokens, CheckpointDefault):
            window_tokens = settings.window_tokens
        self.window_tokens: int | None = window_tokens
        self.segment_tokens = min(
            segment_tokens or default_segment_tokens(self.device.type, model.config),
            model.kernels.most_tokens(model.config),
        )
        segmenter = settings.segmenter if segmenter is None else segmenter
        if segmenter == "reference":
            segmenter = ReferenceSegmenter(self.count_tokens, local_files_only)
        self.reading = Reading(
            tokenizer=checkpoint.tokenizer,
            segmenter=SentenceSegmenter() if isinstance(segmenter, str) else segmenter,
            end_rule="contained" if settings.segmenter == "reference" else "last_character",
            reanchor_tokens=settings.reanchor_tokens,
            lexical_match=settings.match,
            lexical_prior=settings.prior,
            lexical_surroundings=settings.surroundings,
            lexical_least_units=settings.least_units,
        )
        self._pipeline = Pipeline(model, self.reading, self.window_tokens, self.segment_tokens)

    @classmethod
    def from_pretrained(
        cls,
        model: str | Path | None = None,
        *,
        device: str | torch.device = "auto",
        dtype: str | torch.dtype = "auto",
        backend: Literal["auto", "torch", "mamba-ssm"] = "auto",
        window_tokens: int | CheckpointDefault | None = CHECKPOINT_DEFAULT,
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
            A local folder or a Hub id such as "MambaRetriever/SPScanner-130m". Default: the bundled checkpoint.
        device : str or torch.device, default "auto"
            "auto" takes CUDA, then MPS, then the CPU.
        dtype : str or torch.dtype, default "auto"
            "float32" or "bfloat16"; "auto" takes bfloat16 where the hardware multiplies it natively. On a CPU
            also "int8", for the large matrix products only: faster than float32, less memory, and slightly
            different scores (docs/performance.md).
        backend : "auto", "torch" or "mamba-ssm", default "auto"
            What computes the layers: plain torch, or mamba-ssm's Triton kernels. "auto" takes the latter on an
            NVIDIA GPU if they are installed.
        window_tokens, segment_tokens, segmenter
            As for `Scanner`.
        tokenizer : tokenizers.Tokenizer, str or Path, optional
            Replaces the checkpoint's own: a tokenizer, its file or folder, or a Hub id.
        revision : str, optional
            Branch, tag or commit on the Hub.
        token : str or bool, optional
            Access token for the Hub; True for the one stored on this machine.
        cache_dir : str or Path, optional
            Folder for downloads. Default: huggingface_hub's cache.
        local_files_only : bool, default False
            Never use the network.

        Raises
        ------
        CheckpointError
            If the checkpoint is missing or broken.
        ValueError
            For an argument that is out of range, a missing device, or a backend that does not run on it.
        ImportError
            If mamba-ssm was asked for by name and cannot be loaded; the message says what to install.
        """
        _check_options(window_tokens, segment_tokens, segmenter)  # before anything is loaded
        choice = choose(device, dtype, int8=True)
        kernels, backend_reason = choose_backend(backend, choice.device)
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
        checkpoint.model.use_kernels(kernels)
        return cls(
            checkpoint,
            window_tokens=window_tokens,
            segment_tokens=segment_tokens,
            segmenter=segmenter,
            choice=choice,
            backend_reason=backend_reason,
            local_files_only=local_files_only,
        )

    def __repr__(self) -> str:
        dtype = str(self.dtype).removeprefix("torch.")
        return f"Scanner({self.checkpoint.source!r}, device={str(self.device)!r}, dtype={dtype!r})"

    def scan(
        self, query: str, text: str, *, progress: Progress | None = None, cancelled: Cancelled | None = None
    ) -> ScanResult:
        """Score every sentence of a text.

        Parameters
        ----------
        query : str
            The question; not empty.
        text : str
            The whole document, of any length.
        progress : callable, optional
            Called with (tokens done, tokens in total) after every forward pass.
        cancelled : callable, optional
            Called before a text is prepared and after every forward pass; True ends the scan.

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
        cancelled: Cancelled | None = None,
    ) -> list[ScanResult]:
        """Scan several pairs of question and text; pairs of similar length share a forward pass.

        All pairs are checked before any is read; the errors are those of `scan`.

        Parameters
        ----------
        pairs : iterable of (query, text)
            Consecutive pairs on one text cut and tokenize it once.
        progress, cancelled : callable, optional
            As for `scan`; the total is that of the pairs prepared so far.

        Returns
        -------
        list of ScanResult
            In the order of the pairs.
        """
        requests = []
        for pair in pairs:
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise TypeError(f"a pair is {pair!r:.60}; expected (query, text)")
            requests.append(self._pipeline.request(*pair))
        counter = token_counter(self.checkpoint.tokenizer)  # a kept result keeps no model alive
        return [
            ScanResult(request.query, request.text, cut.starts, cut.ends, logits, counter)
            for request, cut, logits in self._pipeline.run(requests, Meter(progress, cancelled))
        ]

    def segment(self, text: str) -> list[Unit]:
        """Cut a text into the units that `scan` scores."""
        return self.reading.segmenter.segment(text)

    def score_units(
        self,
        query: str,
        text: str,
        units: Sequence[Unit],
        *,
        progress: Progress | None = None,
        cancelled: Cancelled | None = None,
    ) -> NDArray[np.float32]:
        """Logits of given units of a text, (units,); the model reads their ``model_text``.

        The other arguments and the errors are those of `scan`.
        """
        return self.score_units_many([(query, text, units)], progress=progress, cancelled=cancelled)[0]

    def score_units_many(
        self,
        requests: Iterable[tuple[str, str, Sequence[Unit]]],
        *,
        progress: Progress | None = None,
        cancelled: Cancelled | None = None,
    ) -> list[NDArray[np.float32]]:
        """Logits of given units of several texts: for each (query, text, units) an array of (units,), in order.

        The other arguments and the errors are those of `scan_many`; similar lengths share a forward pass.
        """
        checked = [self._pipeline.request(query, text, units) for query, text, units in requests]
        return [scored.logits for scored in self._pipeline.run(checked, Meter(progress, cancelled))]

    def count_tokens(self, text: str) -> int:
        """Number of tokens of a text with this scanner's tokenizer, without special tokens."""
        return token_counter(self.checkpoint.tokenizer)(text)


def bundled_token_counter() -> CountTokens:
    """Return a function that counts tokens with the bundled checkpoint's tokenizer; loads no model."""
    return token_counter(read_tokenizer(locate(None) / TOKENIZER))


def _check_options(window_tokens: object, segment_tokens: object, segmenter: object) -> None:
    for name, tokens in (("segment_tokens", segment_tokens), ("window_tokens", window_tokens)):
        given = tokens is not None and not isinstance(tokens, CheckpointDefault)
        if given and (type(tokens) is not int or tokens < 1):
            raise ValueError(f"{name} is {tokens!r}; expected a whole number of at least 1")
    if segmenter is not None:
        check_segmenter(segmenter)
