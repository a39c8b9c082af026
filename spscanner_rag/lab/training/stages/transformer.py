"""The reranker stage for a transformer: a sequence classifier of one logit, for `crossencoder:FOLDER`."""

from typing import Any

import torch

from spscanner_rag.baselines.base import load, no_progress_bars
from spscanner_rag.checkpoint import Checkpoint, ScannerSettings, locate
from spscanner_rag.checkpoint.file_access import CONFIG, read_json
from spscanner_rag.checkpoint.whole_file import current_files
from spscanner_rag.lab.training.model_card import write_model_card
from spscanner_rag.lab.training.stages.loss import TransformerPairs
from spscanner_rag.lab.training.stages.reranker import RerankerStage
from spscanner_rag.text.extras import needed


class TransformerStage(RerankerStage):
    """Trains a transformer with the data, loss and schedule of a Mamba reranker, as Xu et al. 2024 do."""

    def start(self) -> Checkpoint:
        """The classifier to train; a model without a head of one logit gets a new one."""
        base, recipe = self._files.base, self._recipe
        assert base is not None
        library = needed("transformers", "a transformer as --base", "baselines")
        self._tokenizer = load(library.AutoTokenizer.from_pretrained, base)
        torch.manual_seed(recipe.seed)  # for a new head
        options = {"num_labels": 1, "ignore_mismatched_sizes": True, "dtype": torch.float32}
        kind = library.AutoModelForSequenceClassification
        model = load(lambda path: kind.from_pretrained(path, **options), base).to(self._device)
        model.config.pad_token_id = self._tokenizer.pad_token_id  # which a decoder finds its last token by
        room = getattr(model.config, "max_position_embeddings", None) or self._tokenizer.model_max_length
        self._pairs = TransformerPairs(self._tokenizer, min(room, self._tokenizer.model_max_length))
        before = getattr(model.config, "spscanner", {}).get("training", {})
        settings, tokenizer = ScannerSettings(training=before), self._tokenizer.backend_tokenizer
        return Checkpoint(model, settings, tokenizer, base, locate(base), published=False)

    def save(self, checkpoint: Checkpoint) -> None:
        """Write the classifier in transformers' layout, and the model card."""
        model: Any = checkpoint.model
        model.config.spscanner = {"training": checkpoint.settings.training}
        with no_progress_bars():
            model.save_pretrained(self._files.out)
        self._tokenizer.save_pretrained(self._files.out)
        write_model_card(self._files.out, model, checkpoint.settings)


def is_transformer(base: str | None) -> bool:
    """True for the folder or Hub id of a model of transformers that is no Mamba."""
    if base is None:
        return False
    config = read_json(current_files(locate(base)) / CONFIG)
    return "ssm_cfg" not in config and config.get("model_type", "mamba") not in ("mamba", "mamba2")
