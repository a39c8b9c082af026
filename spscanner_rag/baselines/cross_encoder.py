"""Cross-encoders of sentence-transformers, which read the query together with one unit."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spscanner_rag.baselines.base import Pair, Pointwise, load
from spscanner_rag.baselines.units import UnitKind
from spscanner_rag.scan.devices import choose
from spscanner_rag.scorers import Cancelled, stop_if
from spscanner_rag.text.extras import needed
from spscanner_rag.text.units import Segmenter

_LOGGER = logging.getLogger(__name__)
BATCH = 32  # pairs of a forward pass
_COUNTED_AT_ONCE = 256  # texts whose tokens are held at a time


class CrossEncoder(Pointwise):
    """A cross-encoder (Nogueira and Cho, 2019): a transformer with one relevance logit for "query, unit".

    Pairs longer than the model reads are truncated, as in its training; the first time is logged.

    Parameters
    ----------
    model : str or Path
        A Hub id such as "cross-encoder/ms-marco-MiniLM-L6-v2", or a local folder.
    trust_remote_code : bool, default False
        Let a model from the Hub run its own code.
    unit, device, dtype
        See `Baseline` and `Scanner.from_pretrained`.
    """

    def __init__(
        self,
        model: str | Path,
        unit: UnitKind | Segmenter = "sentence",
        *,
        device: str | torch.device = "auto",
        dtype: str | torch.dtype = "float32",
        trust_remote_code: bool = False,
    ) -> None:
        super().__init__(unit)
        library = needed("sentence_transformers", "CrossEncoder", "baselines")
        choice = choose(device, dtype)
        self.name, self.trust_remote_code = f"crossencoder:{model}", trust_remote_code
        options = {
            "device": str(choice.device),
            "trust_remote_code": trust_remote_code,
            "model_kwargs": {"dtype": choice.dtype},
            # `predict` is asked for logits; without this, any callable of torch that a folder names is called
            "activation_fn": torch.nn.Identity(),
        }
        self._model: Any = load(
            lambda path: library.CrossEncoder(path, **options), model, trusted=trust_remote_code
        )
        config = self._model.config
        if config.num_labels != 1:
            names = ", ".join(map(str, config.id2label.values()))
            raise ValueError(
                f"{self.name} has a head with {config.num_labels} labels ({names}); expected one relevance score:"
                " use a cross-encoder that was trained for ranking"
            )
        self._cut_logged = False

    def score_pairs(self, pairs: Sequence[Pair], cancelled: Cancelled) -> NDArray[np.float32]:
        """Logits, before the model's activation function: (pairs,)."""
        scores = np.empty(len(pairs), np.float32)
        with self._lock:  # a tokenizer with truncation is not thread-safe
            lengths = self._token_counts(pairs, cancelled)
            self._log_cut(lengths)
            by_length = np.argsort(-lengths, kind="stable")
            for start in range(0, len(pairs), BATCH):
                stop_if(cancelled)
                batch = by_length[start : start + BATCH]
                scores[batch] = self._model.predict(
                    [pairs[i] for i in batch],
                    batch_size=len(batch),
                    activation_fn=torch.nn.Identity(),
                    show_progress_bar=False,
                    convert_to_numpy=True,
                )
        return scores

    def _token_counts(self, pairs: Sequence[Pair], cancelled: Cancelled) -> NDArray[np.int64]:
        """Tokens of each pair before truncation, without a chat template: (pairs,)."""
        counts: list[int] = []
        for start in range(0, len(pairs), _COUNTED_AT_ONCE):
            stop_if(cancelled)
            queries, texts = zip(*pairs[start : start + _COUNTED_AT_ONCE], strict=True)
            read = self._model.tokenizer(
                list(queries), list(texts), truncation=False, padding=False, verbose=False
            )
            counts.extend(map(len, read["input_ids"]))
        return np.array(counts, np.int64)

    def _log_cut(self, lengths: NDArray[np.int64]) -> None:
        limit = self._model.max_seq_length
        cut = 0 if limit is None else int((lengths > limit).sum())
        if cut and not self._cut_logged:
            self._cut_logged = True
            _LOGGER.warning(
                "%s reads %d tokens: the end of %d of %d units is left out (longest: %d tokens, the query"
                " included); smaller units are read whole.",
                self.name, limit, cut, len(lengths), lengths.max(),
            )  # fmt: skip
