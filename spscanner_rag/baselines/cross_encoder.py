"""Cross-encoders of sentence-transformers, which read the query together with one unit."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import torch
from numpy.typing import NDArray

from spscanner_rag.baselines.base import Pair, Pointwise, check_whole, load
from spscanner_rag.baselines.units import UnitKind
from spscanner_rag.checkpoint.hub import HubOptions, check_hub_options
from spscanner_rag.mamba2.forks import compute_in_forks
from spscanner_rag.scan.devices import choose
from spscanner_rag.scorers import Cancelled, stop_if
from spscanner_rag.text.extras import needed
from spscanner_rag.text.units import Segmenter

_LOGGER = logging.getLogger(__name__)
_COUNTED_AT_ONCE = 256  # texts whose tokens are held at a time


class CrossEncoder(Pointwise):
    """A cross-encoder (Nogueira and Cho, 2019): a transformer with one relevance logit for "query, unit".

    Pairs longer than the model's ``max_length`` are truncated, as in its training; `units_cut` counts them, and
    the first time is logged.

    Parameters
    ----------
    model : str, Path or sentence_transformers.CrossEncoder
        A Hub id such as "cross-encoder/ms-marco-MiniLM-L6-v2", a local folder, or a loaded model, which is
        used as it is, on its device.
    batch_size : int, default 32
        Pairs per forward pass.
    max_length : int
        Tokens of query and unit together. Default: the model's.
    trust_remote_code : bool, default False
        Let a model from the Hub run its own code.
    unit, device, dtype, **hub
        See `Baseline`, `Scanner.from_pretrained` and `HubOptions`.

    Attributes
    ----------
    units_cut : int
        Number of units, over all calls, whose end was not read.
    """

    def __init__(
        self,
        model: object,
        unit: UnitKind | Segmenter = "sentence",
        *,
        device: str | torch.device = "auto",
        dtype: str | torch.dtype = "float32",
        batch_size: int = 32,
        max_length: int | None = None,
        trust_remote_code: bool = False,
        **hub: Unpack[HubOptions],
    ) -> None:
        super().__init__(unit)
        check_hub_options(hub)
        check_whole(batch_size=batch_size)
        if max_length is not None:
            check_whole(max_length=max_length)
        self.batch_size = batch_size
        self.trust_remote_code = trust_remote_code
        self.units_cut = 0
        if isinstance(model, str | Path):
            choice = choose(device, dtype)
            self._model: Any = _load(
                model,
                hub,
                device=str(choice.device),
                max_length=max_length,
                trust_remote_code=trust_remote_code,
                model_kwargs={"dtype": choice.dtype},
            )
            self.name = f"crossencoder:{model}"
            _require_positions(self._model, max_length)
        else:
            self._model = _ready(model, device, max_length)
            self.name = f"crossencoder:{_config(model, '_name_or_path') or type(model).__name__}"
        _require_one_label(self._model, self.name)

    @property
    def max_length(self) -> int | None:
        """The model's limit for the tokens of query and unit together; None: no limit."""
        length = self._model.max_seq_length
        return int(length) if length is not None and length < 2**31 else None

    def score_pairs(self, pairs: Sequence[Pair], cancelled: Cancelled) -> NDArray[np.float32]:
        """Logits, before the model's activation function: (pairs,)."""
        scores = np.empty(len(pairs), np.float32)
        with self._lock:  # a tokenizer with truncation is not thread-safe
            lengths = self._token_counts(pairs, cancelled)
            self._count_cut(lengths)
            by_length = np.argsort(-lengths, kind="stable")
            for start in range(0, len(pairs), self.batch_size):
                stop_if(cancelled)
                batch = by_length[start : start + self.batch_size]
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
        tokenize: Callable[..., Any] = self._model.tokenizer
        counts: list[int] = []
        for start in range(0, len(pairs), _COUNTED_AT_ONCE):
            stop_if(cancelled)
            queries, texts = zip(*pairs[start : start + _COUNTED_AT_ONCE], strict=True)
            read = tokenize(list(queries), list(texts), truncation=False, padding=False, verbose=False)
            counts.extend(map(len, read["input_ids"]))
        return np.array(counts, np.int64)

    def _count_cut(self, lengths: NDArray[np.int64]) -> None:
        limit = self.max_length
        cut = 0 if limit is None else int((lengths > limit).sum())
        if cut and not self.units_cut:
            _LOGGER.warning(
                "%s reads %d tokens: the end of %d of %d units is left out (longest: %d tokens, the query"
                " included); smaller units, or a larger max_length if the model has room, read all."
                " units_cut goes on counting.",
                self.name, limit, cut, len(lengths), lengths.max(),
            )  # fmt: skip
        self.units_cut += cut


def _load(name: str | Path, hub: HubOptions, **options: Any) -> Any:  # noqa: ANN401 - untyped library
    library = needed("sentence_transformers", "CrossEncoder", "baselines")
    options |= {key: value for key, value in hub.items() if key != "cache_dir"}
    # `predict` is asked for logits; without this, any callable of torch that the folder names would be called.
    options["activation_fn"] = torch.nn.Identity()
    if (cache := hub.get("cache_dir")) is not None:
        options["cache_folder"] = str(cache)
    trusted = options["trust_remote_code"]
    return load(lambda path: library.CrossEncoder(path, **options), name, hub.get("token"), trusted)


def _ready(model: object, device: object, max_length: int | None) -> object:
    compute_in_forks()
    if not callable(getattr(model, "predict", None)) or getattr(model, "tokenizer", None) is None:
        raise TypeError(
            f"model is a {type(model).__name__}; expected a name, a folder, or a"
            " sentence_transformers.CrossEncoder"
        )
    if max_length is not None or device != "auto":
        raise ValueError(
            "device and max_length are for a model given by name; expected them set on the loaded one"
        )
    return model


def _require_one_label(model: object, name: str) -> None:
    labels = getattr(model, "num_labels", None) or _config(model, "num_labels") or 1
    if labels != 1:
        names = ", ".join(map(str, (_config(model, "id2label") or {}).values()))
        raise ValueError(
            f"{name} has a head with {labels} labels ({names}); expected one relevance score:"
            " use a cross-encoder that was trained for ranking"
        )


def _require_positions(model: object, max_length: int | None) -> None:
    positions = _config(model, "max_position_embeddings")
    if max_length is None or not positions or _config(model, "relative_attention"):
        return
    if max_length > positions:
        raise ValueError(
            f"max_length is {max_length}; expected at most {positions}, the positions that the model has"
        )


def _config(model: object, key: str) -> Any:  # noqa: ANN401 - untyped library
    return getattr(getattr(model, "config", None), key, None)
