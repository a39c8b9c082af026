"""The scanner as a `Scorer`: given units of a text → one logit for each, by a checkpoint's model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.checkpoint import Checkpoint
from spscanner_rag.checkpoint.config import CHECKPOINT_DEFAULT, CheckpointDefault
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.mamba2.int8_linear import projection_dtype
from spscanner_rag.scan.devices import Choice, default_segment_tokens
from spscanner_rag.scan.pipeline import Meter, Pipeline, check_options
from spscanner_rag.scan.prepare import Reading
from spscanner_rag.scorers import Cancelled, Progress
from spscanner_rag.text.segmentation import ReferenceSegmenter
from spscanner_rag.text.tokenization import token_counter
from spscanner_rag.text.units import Segmenter, Unit


class UnitScorer:
    """Cuts texts into units and scores them; `Scanner` is the class for users, and documents the parameters."""

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
        check_options(window_tokens, segment_tokens, segmenter)
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
        if (settings.segmenter if segmenter is None else segmenter) == "reference":
            segmenter = ReferenceSegmenter(self.count_tokens, local_files_only)
        self.reading = Reading.of(checkpoint, segmenter)
        self.pipeline = Pipeline(model, self.reading, self.window_tokens, self.segment_tokens)

    def segment(self, text: str) -> list[Unit]:
        """Cut a text into the units that `scan` scores; with a document's blocks, `scorers.segment` does."""
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
        """Logits of given units of a text, (units,); other arguments and errors are those of `scan`."""
        return self.score_units_many([(query, text, units)], progress=progress, cancelled=cancelled)[0]

    def score_units_many(
        self,
        requests: Iterable[tuple[str, str, Sequence[Unit]]],
        *,
        together: bool = False,
        collection: CollectionIndex | None = None,
        progress: Progress | None = None,
        cancelled: Cancelled | None = None,
    ) -> list[NDArray[np.float32]]:
        """Logits of given units, whose ``model_text`` is read: for each (query, text, units) an array of (units,).

        The other arguments and the errors are those of `scan_many`.
        """
        checked = [self.pipeline.request(query, text, units) for query, text, units in requests]
        meter = Meter(progress, cancelled)
        return [scored.logits for scored in self.pipeline.run(checked, meter, collection, together)]

    @property
    def uses_collection(self) -> bool:
        """Whether logits depend on the other texts of a collection: if the checkpoint has a lexical channel."""
        return self.reading.lexical

    def count_tokens(self, text: str) -> int:
        """Number of tokens of a text with this scanner's tokenizer, without special tokens."""
        return token_counter(self.checkpoint.tokenizer)(text)
