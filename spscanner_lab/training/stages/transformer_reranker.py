"""The stage that trains a transformer's classifier to rank passages."""

import sys
from typing import Any

import torch

from spscanner_lab.training.loop import Objective
from spscanner_lab.training.model_card import write_model_card
from spscanner_lab.training.stages.pair_objectives import TransformerObjective
from spscanner_lab.training.stages.reranker import RerankerStage
from spscanner_rag.baselines.model_loading import load, no_progress_bars
from spscanner_rag.checkpoint import Checkpoint, ScannerSettings, locate
from spscanner_rag.checkpoint.bounded_files import read_json
from spscanner_rag.checkpoint.file_names import CONFIG
from spscanner_rag.checkpoint.location import current_files
from spscanner_rag.system.install_hints import import_extra


class TransformerStage(RerankerStage):
    """Trains a transformer for `crossencoder:FOLDER`.

    The data, loss and schedule are those of a Mamba reranker.
    """

    def start(self) -> Checkpoint:
        """The model to train."""
        base = self._files.base
        assert base is not None
        torch.manual_seed(self._recipe.seed)  # for a new head
        model = self._loaded(base).float().to(self._device)
        before = getattr(_network(model).config, "spscanner", {}).get("training", {})
        settings = ScannerSettings(training=before)
        tokenizer = self._tokenizer.backend_tokenizer
        return Checkpoint(
            model=model,
            settings=settings,
            tokenizer=tokenizer,
            source=base,
            folder=locate(base),
            published=False,
        )

    def _loaded(self, base: str) -> Any:  # noqa: ANN401 - transformers' own
        """The classifier, with a new head if the model has none of one logit."""
        library = import_extra("transformers", "a transformer as --base", "baselines")
        self._tokenizer = load(library.AutoTokenizer.from_pretrained, base)
        options = {
            "num_labels": 1,
            "ignore_mismatched_sizes": True,
            "dtype": torch.float32,
        }
        kind = library.AutoModelForSequenceClassification
        model = load(lambda path: kind.from_pretrained(path, **options), base)
        # a decoder finds its last token by this
        model.config.pad_token_id = self._tokenizer.pad_token_id
        return model

    def objective(self, start: Checkpoint) -> Objective:
        """The objective: find the passage with the answer among hard negatives."""
        objective = self._of(TransformerObjective, self._tokenizer)
        positions = getattr(start.model.config, "max_position_embeddings", None)
        tokenizer_tokens = self._tokenizer.model_max_length
        objective.most_tokens = min(positions or sys.maxsize, tokenizer_tokens)
        return objective

    def save(self, checkpoint: Checkpoint) -> None:
        """Write the model in its library's layout, and the model card."""
        model: Any = checkpoint.model
        _network(model).config.spscanner = {"training": checkpoint.settings.training}
        with no_progress_bars():
            model.save_pretrained(str(self._files.out))
        self._tokenizer.save_pretrained(self._files.out)
        write_model_card(self._files.out, _network(model), checkpoint.settings)


def is_transformer(base: str | None) -> bool:
    """True for the folder or Hub id of a transformers model that is not a Mamba."""
    if base is None:
        return False
    config = read_json(current_files(locate(base)) / CONFIG)
    if "ssm_cfg" in config:
        return False
    return config.get("model_type", "mamba") not in ("mamba", "mamba2")


def _network(model: Any) -> Any:  # noqa: ANN401
    """The transformers model, which is in the first module of an embedding model."""
    return model[0].auto_model if isinstance(model, torch.nn.Sequential) else model
