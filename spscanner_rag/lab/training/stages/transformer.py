"""Stages for other libraries' models: a sequence classifier of one logit, and an embedding model."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spscanner_rag.baselines.base import load, no_progress_bars
from spscanner_rag.baselines.dense import Dense
from spscanner_rag.checkpoint import Checkpoint, ScannerSettings, locate
from spscanner_rag.checkpoint.file_access import CONFIG, read_json
from spscanner_rag.checkpoint.whole_file import current_files
from spscanner_rag.lab.training.loop import Objective
from spscanner_rag.lab.training.model_card import write_model_card
from spscanner_rag.lab.training.stages.loss import EmbedderObjective, TransformerPairs
from spscanner_rag.lab.training.stages.reranker import RerankerStage
from spscanner_rag.text.extras import needed
from spscanner_rag.text.units import readable


class TransformerStage(RerankerStage):
    """Trains a transformer with the data, loss and schedule of a Mamba reranker, for `crossencoder:FOLDER`."""

    def start(self) -> Checkpoint:
        """The model to train."""
        base = self._files.base
        assert base is not None
        torch.manual_seed(self._recipe.seed)  # for a new head
        model = self._loaded(base).float().to(self._device)
        before = getattr(_network(model).config, "spscanner", {}).get("training", {})
        settings, tokenizer = ScannerSettings(training=before), self._tokenizer.backend_tokenizer
        return Checkpoint(model, settings, tokenizer, base, locate(base), published=False)

    def _loaded(self, base: str) -> Any:  # noqa: ANN401 - transformers' own
        """The classifier; a model without a head of one logit gets a new one."""
        library = needed("transformers", "a transformer as --base", "baselines")
        self._tokenizer = load(library.AutoTokenizer.from_pretrained, base)
        options = {"num_labels": 1, "ignore_mismatched_sizes": True, "dtype": torch.float32}
        kind = library.AutoModelForSequenceClassification
        model = load(lambda path: kind.from_pretrained(path, **options), base)
        model.config.pad_token_id = self._tokenizer.pad_token_id  # which a decoder finds its last token by
        room = getattr(model.config, "max_position_embeddings", None) or self._tokenizer.model_max_length
        self._pairs = TransformerPairs(self._tokenizer, min(room, self._tokenizer.model_max_length))
        return model

    def save(self, checkpoint: Checkpoint) -> None:
        """Write the model in its library's layout, and the model card."""
        model: Any = checkpoint.model
        _network(model).config.spscanner = {"training": checkpoint.settings.training}
        with no_progress_bars():
            model.save_pretrained(str(self._files.out))
        self._tokenizer.save_pretrained(self._files.out)
        write_model_card(self._files.out, _network(model), checkpoint.settings)


class EmbedderStage(TransformerStage):
    """Trains a sentence-transformers model on the passages of a reranker, for `dense:FOLDER`."""

    def _loaded(self, base: str) -> Any:  # noqa: ANN401 - sentence-transformers' own
        model = Dense(base, device=str(self._device)).sentence_transformer
        self._tokenizer = model.tokenizer
        return model

    def objective(self, start: Checkpoint) -> Objective:
        """The passage with the answer among all of a step."""
        return EmbedderObjective(self.passages(), start.model, self._recipe)

    def score(self, model: Any, question: str, texts: Sequence[str]) -> NDArray[np.float32]:  # noqa: ANN401
        """The model's own similarities: (texts,)."""
        read = [readable(text) for text in (question, *texts)]
        vectors = model.encode(read, convert_to_tensor=True, show_progress_bar=False)
        similarities: NDArray[np.float32] = model.similarity(vectors[:1], vectors[1:])[0].cpu().numpy()
        return similarities


def is_transformer(base: str | None) -> bool:
    """True for the folder or Hub id of a model of transformers that is no Mamba."""
    if base is None:
        return False
    config = read_json(current_files(locate(base)) / CONFIG)
    return "ssm_cfg" not in config and config.get("model_type", "mamba") not in ("mamba", "mamba2")


def _network(model: Any) -> Any:  # noqa: ANN401
    """The model of transformers, which is the first module of an embedding model."""
    return model[0].auto_model if isinstance(model, torch.nn.Sequential) else model
