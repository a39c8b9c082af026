"""Rerankers of "State Space Models are Strong Text Rerankers" (Xu et al., 2024)."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Unpack

import numpy as np
import torch
from tokenizers import Tokenizer

from spscanner_rag.baselines.arguments import check_whole
from spscanner_rag.baselines.baseline import Scores
from spscanner_rag.baselines.pair_reader import PairReader
from spscanner_rag.baselines.pointwise import Pair, Pointwise
from spscanner_rag.baselines.reranker_layout import RERANKER
from spscanner_rag.baselines.unit_kinds import UnitKind
from spscanner_rag.checkpoint.config import HEAD_TENSORS
from spscanner_rag.checkpoint.errors import CheckpointError
from spscanner_rag.checkpoint.hub import HubOptions
from spscanner_rag.checkpoint.load import load_checkpoint
from spscanner_rag.mamba2.backends import choose_backend
from spscanner_rag.mamba2.reader import read_logits
from spscanner_rag.mamba2.token_sequences import TokenSequence
from spscanner_rag.scan.devices import choose
from spscanner_rag.scan.passes import in_runs
from spscanner_rag.scan.segment_tokens import default_segment_tokens
from spscanner_rag.scorers import Cancelled, stop_if
from spscanner_rag.text.units import Segmenter

FIRST_P_TOKENS: Final = 512
LONG_P_TOKENS: Final = 1536
"""Tokens at the start of each document that the paper's settings FirstP and LongP
read."""


class MambaReranker(Pointwise):
    """Mamba reranker (Xu et al., 2024), with one logit for a query and a unit.

    The input is "document: {unit}; query: {query};" and an end-of-text token, whose
    hidden state the head reads.

    Memory does not grow with the length of a unit, so whole documents fit, and nothing
    is truncated unless ``document_tokens`` is given. The paper's FirstP and LongP are
    ``MambaReranker(model, "document", document_tokens=FIRST_P_TOKENS)`` and
    ``LONG_P_TOKENS``.

    Parameters
    ----------
    model : str or Path
        A folder or Hub id of a Mamba-1 or Mamba-2 model, in mamba-ssm's or
        transformers' layout. The head is ``binary_head.weight`` and ``.bias`` (our
        layout), or ``score.weight``, with or without ``score.bias`` (transformers'
        sequence classifiers, with the backbone under ``backbone.`` or ``model.``).
    end_token : str, optional
        Default: the first of "<|endoftext|>", "</s>" and "<|im_end|>" that the
        tokenizer has.
    document_tokens : int, optional
        Tokens at the start of each unit that are read, not counting the template.
        Default: all.
    unit, device, dtype, tokenizer, **hub
        See `Baseline`, `Scanner.from_pretrained` and `HubOptions`.

    Examples
    --------
    >>> scorer = MambaReranker("a-folder", "document")  # doctest: +SKIP
    >>> units = scorer.units_of(text)  # doctest: +SKIP
    >>> logits = scorer.score_units("Who signed it?", text, units)  # doctest: +SKIP
    """

    def __init__(
        self,
        model: str | Path,
        unit: UnitKind | Segmenter = "sentence",
        *,
        device: str | torch.device = "auto",
        dtype: str | torch.dtype = "auto",
        end_token: str | None = None,
        document_tokens: int | None = None,
        tokenizer: Tokenizer | str | Path | None = None,
        **hub: Unpack[HubOptions],
    ) -> None:
        super().__init__(unit)
        if document_tokens is not None:
            check_whole(document_tokens=document_tokens)
        self.document_tokens = document_tokens
        choice = choose(device, dtype)
        self.name = f"mamba:{model}"
        loaded = load_checkpoint(
            model,
            device=choice.device,
            dtype=choice.dtype,
            tokenizer=tokenizer,
            encoder=None,
            require_head=False,
            layout=RERANKER,
            **hub,
        )
        if not loaded.has_head or any(loaded.settings.lexical.values()):
            got = "has a lexical channel, so it is a scanner"
            if not loaded.has_head:
                got = f"neither {HEAD_TENSORS[0]} nor score.weight is there"
            raise CheckpointError(
                f"{loaded.folder}: {got}; expected a trained reranker"
            )
        self._model = loaded.model
        # Mamba-1's plain scan is faster in rows than packed into one.
        if self._model.config.mixer is None:
            self._model.use_kernels(choose_backend("auto", choice.device).kernels)
        self._pairs = PairReader(loaded.tokenizer, end_token)
        self.segment_tokens = default_segment_tokens(
            choice.device.type, self._model.config
        )

    def count_tokens(self, text: str) -> int:
        """Count a text's tokens with this model's tokenizer, without special tokens."""
        return len(self._pairs.ids(text))

    def score_pairs(self, pairs: Sequence[Pair], cancelled: Cancelled) -> Scores:
        """Logits at the last token of each pair: (pairs,)."""

        def sequences() -> Iterator[TokenSequence]:
            for pair in pairs:
                stop_if(cancelled)
                yield self._pairs.sequence(*pair, self.document_tokens)

        def n_tokens(sequence: TokenSequence) -> int:
            return len(sequence.input_ids)

        def after_step(tokens: int) -> None:
            stop_if(cancelled)

        logits: list[Scores] = []
        for run in in_runs(sequences(), n_tokens, self.segment_tokens):
            logits += read_logits(self._model, run, self.segment_tokens, after_step)
        return np.concatenate(logits)
