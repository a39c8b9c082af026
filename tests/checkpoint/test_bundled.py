"""What a first try of the bundled checkpoint shows: short texts, and what is in its folder."""

from pathlib import Path

import numpy as np
import pytest

from spscanner_rag import Scanner
from spscanner_rag.checkpoint import locate


@pytest.fixture(scope="module")
def scanner() -> Scanner:
    return Scanner.from_pretrained(device="cpu", dtype="float32")


@pytest.mark.parametrize(
    ("question", "sentences", "best"),
    [
        ("Who signed the treaty?", ["Anne was born in 1787.", "She signed the treaty."], 1),
        ("When was the bridge opened?", ["The bridge was opened in 1894.", "It rained.", "Nobody came."], 0),
        ("What is the capital of France?",
         ["Berlin is in Germany.", "Rome is old.", "The capital of France is Paris."], 2),
        ("Who keeps the lighthouse?", ["It rained.", "The lighthouse is kept by Ada.", "Fish is cheap."], 1),
    ],
)  # fmt: skip
def test_of_a_few_sentences_the_one_that_answers_is_first(
    scanner: Scanner, question: str, sentences: list[str], best: int
) -> None:
    together = scanner.scan(question, " ".join(sentences)).logits
    assert int(np.argmax(together)) == best
    alone = [float(scanner.scan(question, sentence).logits[0]) for sentence in sentences]
    assert int(np.argmax(alone)) == best


def test_the_folder_is_small_enough_for_the_package() -> None:
    folder = Path(locate(None))
    assert sum(path.stat().st_size for path in folder.iterdir()) < 20e6
