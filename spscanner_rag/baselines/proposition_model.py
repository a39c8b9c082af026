"""A model that decomposes passages into propositions."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from spscanner_rag.baselines.model_loading import load
from spscanner_rag.baselines.proposition_replies import Source
from spscanner_rag.scan.devices import choose
from spscanner_rag.system.install_hints import import_extra
from spscanner_rag.text.surrogates import replace_surrogates

SEQ2SEQ_INPUT = "Title: {title}. Section: . Content: {content}"
"""The input format of the checkpoint of "Dense X Retrieval", without a section
title."""

BATCH = 8  # passages read together


class Seq2Seq:
    """A checkpoint like "chentong00/propositionizer-wiki-flan-t5-large".

    Its own code is never run.

    ``ImportError`` without transformers, ``ValueError`` if there is no such model.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        device: str | torch.device = "auto",
        dtype: str | torch.dtype = "float32",
        max_new_tokens: int = 512,
    ) -> None:
        library = import_extra("transformers", "a proposition model", "baselines")
        choice = choose(device, dtype)
        self.max_new_tokens = max_new_tokens
        self.device = choice.device
        tokenizers = library.AutoTokenizer
        models = library.AutoModelForSeq2SeqLM

        def tokenizer_at(path: str) -> Any:  # noqa: ANN401 - of an optional package
            return tokenizers.from_pretrained(path, trust_remote_code=False)

        def network_at(path: str) -> Any:  # noqa: ANN401 - of an optional package
            return models.from_pretrained(
                path, dtype=choice.dtype, trust_remote_code=False
            )

        self._tokenizer = load(tokenizer_at, model)
        network = load(network_at, model)
        self._model = network.to(choice.device).eval()

    def __call__(self, sources: Sequence[Source]) -> Iterator[str]:
        """The reply for each passage, in order."""
        for start in range(0, len(sources), BATCH):
            texts = []
            for source in sources[start : start + BATCH]:
                text = SEQ2SEQ_INPUT.format(**source._asdict())
                texts.append(replace_surrogates(text))
            inputs = self._tokenizer(
                texts, padding=True, return_tensors="pt", verbose=False
            ).to(self.device)
            with torch.inference_mode():
                outputs = self._model.generate(
                    input_ids=inputs["input_ids"],
                    attention_mask=inputs["attention_mask"],
                    max_new_tokens=self.max_new_tokens,
                    do_sample=False,
                    num_beams=1,
                )
            yield from self._tokenizer.batch_decode(outputs, skip_special_tokens=True)
