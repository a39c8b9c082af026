"""The objectives that read a question and a passage together.

They are those of a Mamba reranker and of a transformer's classifier.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from spscanner_lab.training.data.document_store import DocumentStore
from spscanner_lab.training.data.passages import PassageDraw
from spscanner_lab.training.recipe import Recipe
from spscanner_lab.training.stages.evidence import passes, unit_states
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.text.surrogates import replace_surrogates
from spscanner_rag.text.units import Segmenter


class RerankerObjective(PassageDraw):
    """Softmax cross-entropy over a column of passages.

    As in Xu et al. 2024, "State Space Models are Strong Text Rerankers".

    L = -log(exp(s_0) / sum_i exp(s_i)), where s_0 is the logit of the passage with the
    answer, and the other s_i are those of the negatives. A pair is read as by a Mamba
    reranker: the passage, the question and the end token, at which the logit is read.
    """

    splits = True

    def __init__(
        self,
        documents: DocumentStore,
        recipe: Recipe,
        segmenter: Segmenter,
        reader: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(documents, recipe, segmenter)
        self.reader = reader  # a `PairReader`, or transformers' tokenizer

    def pair(self, question: str, passage: str, length: int) -> Any:  # noqa: ANN401
        """The tokens of a pair, in ``input_ids``.

        The passage is cut after ``length`` tokens.
        """
        return self.reader.sequence(question, passage, length)

    def pass_logits(
        self,
        model: Any,  # noqa: ANN401
        pairs: Sequence[Any],
        dtype: str,
    ) -> Tensor:
        """Logits of pairs read in one pass, (pairs,).

        ``dtype`` is that of matrix products.
        """
        logits: Tensor = model.score(torch.cat(unit_states(model, pairs, dtype)))
        return logits

    def logits(self, model: nn.Module, pairs: Sequence[Any], dtype: str) -> Tensor:
        """Logits of pairs, (pairs,), read in as many passes as needed."""
        packs = isinstance(model, ScannerModel) and model.kernels.packs
        lengths = [len(pair.input_ids) for pair in pairs]
        logits_by_number: dict[int, Tensor] = {}
        for numbers in passes(lengths, self.recipe.tokens_per_pass, packs):
            members = [pairs[number] for number in numbers]
            logits = self.pass_logits(model, members, dtype)
            logits_by_number.update(zip(numbers, logits.unbind(), strict=True))
        return torch.stack([logits_by_number[number] for number in range(len(pairs))])

    def example(self, number: int, length: int) -> Sequence[Any]:
        """The pairs of column ``number``, the right one first.

        Passages are cut after ``length`` tokens.
        """
        column = self.column(number)
        pairs = []
        for passage in column.passages:
            pairs.append(self.pair(column.question, passage, length))
        return pairs

    def tokens(self, example: Sequence[Any]) -> int:
        """The number of tokens in all pairs."""
        return sum(len(pair.input_ids) for pair in example)

    def losses(
        self,
        model: nn.Module,
        examples: Sequence[Sequence[Any]],
        numbers: Sequence[int],
    ) -> Iterator[Tensor]:
        """The parts of a step's loss, each with the losses of full columns."""
        lengths = [self.tokens(examples[number]) for number in numbers]
        for indices in passes(lengths, self.recipe.tokens_per_pass, packs=True):
            members = [numbers[index] for index in indices]
            pairs: list[Any] = []
            sizes = []
            for number in members:
                pairs.extend(examples[number])
                sizes.append(len(examples[number]))
            logits = self.logits(model, pairs, self.recipe.dtype)
            # the first one
            right = torch.zeros((), dtype=torch.int64, device=logits.device)
            columns = torch.split(logits, sizes)
            losses = [F.cross_entropy(column, right) for column in columns]
            yield torch.stack(losses).sum() / len(examples)

    def score(
        self,
        model: Any,  # noqa: ANN401
        question: str,
        texts: Sequence[str],
    ) -> NDArray[np.float32]:
        """The logits of texts, (texts,), by which a validation ranks them."""
        length = max(self.recipe.sequence_tokens)
        pairs = [self.pair(question, text, length) for text in texts]
        return self.logits(model, pairs, "float32").cpu().numpy()


class TransformerObjective(RerankerObjective):
    """The same loss for a sequence classifier of transformers.

    It reads a pair as two texts, the longer one cut.
    """

    most_tokens = sys.maxsize

    def pair(self, question: str, passage: str, length: int) -> Any:  # noqa: ANN401
        """The tokens of a pair, at most ``length`` in all."""
        return self.reader(
            replace_surrogates(question),
            replace_surrogates(passage),
            truncation=True,
            max_length=min(length, self.most_tokens),
        )

    def pass_logits(
        self,
        model: Any,  # noqa: ANN401
        pairs: Sequence[Any],
        dtype: str,
    ) -> Tensor:
        """Logits of pairs in one padded batch: (pairs,)."""
        inputs = self.reader.pad(list(pairs), return_tensors="pt").to(model.device)
        with torch.autocast(
            model.device.type, torch.bfloat16, enabled=dtype == "bfloat16"
        ):
            logits: Tensor = model(**inputs).logits
        return logits[:, 0].float()
