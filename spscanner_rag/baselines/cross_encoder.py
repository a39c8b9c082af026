"""Cross-encoders of sentence-transformers, which read the query together with one unit."""

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

BATCH = 32  # pairs of a forward pass


class CrossEncoder(Pointwise):
    """A cross-encoder (Nogueira and Cho, 2019): a transformer with one relevance logit for "query, unit".

    Pairs longer than the model reads are truncated, as in its training.

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

    def score_pairs(self, pairs: Sequence[Pair], cancelled: Cancelled) -> NDArray[np.float32]:
        """Logits, before the model's activation function: (pairs,)."""
        scores = np.empty(len(pairs), np.float32)
        with self._lock:  # a tokenizer with truncation is not thread-safe
            read = (self._model.tokenizer(*pair, truncation=False, verbose=False) for pair in pairs)
            by_length = np.argsort([-len(each["input_ids"]) for each in read], kind="stable")
        for start in range(0, len(pairs), BATCH):
            stop_if(cancelled)
            batch = by_length[start : start + BATCH]
            with self._lock:
                scores[batch] = self._model.predict(
                    [pairs[i] for i in batch],
                    batch_size=len(batch),
                    activation_fn=torch.nn.Identity(),
                    show_progress_bar=False,
                    convert_to_numpy=True,
                )
        return scores
