"""Length normalization of the ablation: what it adds, and that the weight with the best ranks is taken."""

import numpy as np
import pytest

from benchmarks.length_normalized import WEIGHTS, LengthNormalized, fitted_weight
from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.scanner import Scanner

TEXT = "He left. The captain of the ship left the harbour in the evening. It rained."


def test_logits_change_by_length_alone(tiny_scanner: Scanner) -> None:
    units = tiny_scanner.segment(TEXT)
    plain = tiny_scanner.score_units("Who left?", TEXT, units)
    changed = LengthNormalized(tiny_scanner, 0.5)
    lengths = [tiny_scanner.count_tokens(unit.model_text) for unit in units]
    assert len(set(lengths)) > 1
    got = changed.score_units("Who left?", TEXT, changed.segment(TEXT)) - plain
    np.testing.assert_allclose(got, 0.5 * np.log(lengths), rtol=1e-4)


class Short:
    """Takes every sentence for equally good: the earlier comes first, whatever its length."""

    def __init__(self, scanner: Scanner) -> None:
        self.segment, self.count_tokens = scanner.segment, scanner.count_tokens

    def score_units(self, query: str, text: str, units: list[object]) -> np.ndarray:
        return np.zeros(len(units), np.float32)


@pytest.mark.parametrize(("evidence", "sign"), [("The captain", 1), ("It rained", -1), ("He left", 0)])
def test_the_weight_with_the_best_ranks(tiny_scanner: Scanner, evidence: str, sign: int) -> None:
    text = "He left his home. The captain of the ship left the harbour in the evening. It rained."
    start = text.index(evidence)
    document = Document("d", "s", "", text, (Question("q", "Who?", ((start, start + 4),)),))
    weight = fitted_weight(Short(tiny_scanner), {"s": [(document, document.questions[0])]})  # type: ignore[arg-type]
    assert np.sign(weight) == sign
    assert abs(weight) == min(abs(other) for other in WEIGHTS if np.sign(other) == sign)
