"""The loss of the reranker stage: which passage of a column answers the question."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from spscanner_rag.lab.training.data.example import Example
from spscanner_rag.lab.training.stages.evidence_objective import EvidenceObjective
from spscanner_rag.mamba2.model import ScannerModel


class RerankerObjective(EvidenceObjective):
    """Softmax cross-entropy over the column (Xu et al. 2024, "State Space Models are Strong Text Rerankers").

    L = -log(exp(s_0) / sum_i exp(s_i)), where s_0 is the logit of the passage with the answer and the others are
    those of the negatives; each logit is read from the end token of a pair.
    """

    def _example_loss(
        self,
        model: ScannerModel,
        ends: Sequence[Tensor],
        example: Example,
        weight: Tensor,
        units: int,
        sequences: int,
    ) -> Tensor:
        """Loss of one column from the hidden states of its end tokens, (1, d_model) each."""
        logits = model.score(torch.cat(list(ends)), None)  # (column,)
        right = torch.zeros((), dtype=torch.int64, device=logits.device)  # the first one
        return F.cross_entropy(logits, right) / sequences
