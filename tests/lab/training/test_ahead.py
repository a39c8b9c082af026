import numpy as np
import pytest

from spscanner_rag.lab.evidence.questions import Document
from spscanner_rag.lab.training.data.documents import DocumentStore
from spscanner_rag.lab.training.data.examples import ExampleSource
from spscanner_rag.lab.training.data.stretches import Example
from spscanner_rag.lab.training.loop import check_workers, drawn_steps
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lab.training.stages.loss import EvidenceObjective
from spscanner_rag.scan.prepare import Reading

DRAWN = Recipe(sequences_per_step=2, sequence_tokens=(128, 192, 256))


@pytest.fixture
def objective(documents: list[Document], reading: Reading) -> EvidenceObjective:
    return EvidenceObjective(ExampleSource(DocumentStore(documents), reading, DRAWN), DRAWN, 16)


def taken(objective: EvidenceObjective, steps: range, workers: int) -> list[tuple[int, list[Example]]]:
    return list(drawn_steps(objective, DRAWN, steps, workers))


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork")
@pytest.mark.filterwarnings("ignore:This DataLoader will create")  # more processes than there are cores
def test_steps_are_the_same_whoever_draws_them(objective: EvidenceObjective) -> None:
    alone = taken(objective, range(3, 15), 0)
    assert len({length for length, _ in alone}) > 1
    together = taken(objective, range(3, 15), 2)
    for (length, examples), (other_length, others) in zip(alone, together, strict=True):
        assert length == other_length
        for example, other in zip(examples, others, strict=True):
            np.testing.assert_array_equal(example.sequence.input_ids, other.sequence.input_ids)
            np.testing.assert_array_equal(example.relevant, other.relevant)
    assert [length for length, _ in taken(objective, range(5, 8), 0)] == [length for length, _ in alone[2:5]]


def test_processes_that_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="workers is -1; expected 0 or more"):
        check_workers(-1)
    monkeypatch.setattr("multiprocessing.get_all_start_methods", lambda: ["spawn"])
    check_workers(0)
    with pytest.raises(ValueError, match="cannot fork processes: expected 0"):
        check_workers(2)
