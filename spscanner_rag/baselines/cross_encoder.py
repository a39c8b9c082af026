"""Cross-encoders: transformers that read the query together with one unit."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from spscanner_rag.baselines.baseline import Scores
from spscanner_rag.baselines.model_loading import load_by_library
from spscanner_rag.baselines.pointwise import Pair, Pointwise
from spscanner_rag.baselines.unit_kinds import UnitKind
from spscanner_rag.scan.devices import choose
from spscanner_rag.scorers import Cancelled, stop_if
from spscanner_rag.text.units import Segmenter

BATCH = 32  # pairs per forward pass


class CrossEncoder(Pointwise):
    """A cross-encoder (Nogueira and Cho, 2019).

    It is a transformer with one relevance logit for a query and a unit. Pairs longer
    than the model's limit are truncated, as in its training.

    Parameters
    ----------
    model : str or Path
        A Hub id such as "cross-encoder/ms-marco-MiniLM-L6-v2", or a local folder.
    trust_remote_code : bool, default False
        Let a model from the Hub run its own code.
    unit, device, dtype
        See `Baseline` and `Scanner.from_pretrained`.

    Examples
    --------
    >>> scorer = CrossEncoder("cross-encoder/ms-marco-MiniLM-L6-v2")  # doctest: +SKIP
    >>> units = scorer.units_of(text)  # doctest: +SKIP
    >>> logits = scorer.score_units("Who signed it?", text, units)  # doctest: +SKIP
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
        choice = choose(device, dtype)
        self.name = f"crossencoder:{model}"
        self.trust_remote_code = trust_remote_code
        self._model = load_by_library(
            "CrossEncoder",
            model,
            trust_remote_code,
            device=str(choice.device),
            model_kwargs={"dtype": choice.dtype},
            # the folder names an activation function, which would be called; `predict`
            # has to return logits anyway
            activation_fn=torch.nn.Identity(),
        )
        config = self._model.config
        if config.num_labels != 1:
            names = ", ".join(map(str, config.id2label.values()))
            raise ValueError(
                f"{self.name} has a head with {config.num_labels} labels ({names});"
                " expected one relevance score: use a cross-encoder that was trained"
                " for ranking"
            )

    def score_pairs(self, pairs: Sequence[Pair], cancelled: Cancelled) -> Scores:
        """Logits, before the model's activation function: (pairs,)."""
        scores = np.empty(len(pairs), np.float32)
        by_length = np.argsort(self._lengths(pairs), kind="stable")
        for start in range(0, len(pairs), BATCH):
            stop_if(cancelled)
            batch = by_length[start : start + BATCH]
            with self._lock:
                scores[batch] = self._model.predict(
                    [pairs[number] for number in batch],
                    batch_size=len(batch),
                    activation_fn=torch.nn.Identity(),
                    show_progress_bar=False,
                    convert_to_numpy=True,
                )
        return scores

    def _lengths(self, pairs: Sequence[Pair]) -> list[int]:
        """The number of tokens of each pair, negative, so that the longest is first."""
        lengths = []
        with self._lock:  # a tokenizer with truncation is not thread-safe
            for pair in pairs:
                encoding = self._model.tokenizer(*pair, truncation=False, verbose=False)
                lengths.append(-len(encoding["input_ids"]))
        return lengths
