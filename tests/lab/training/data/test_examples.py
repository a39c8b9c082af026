import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_lab.evidence.questions import Document, Question
from spscanner_lab.training.data import examples as examples_module
from spscanner_lab.training.data.document_store import DocumentStore
from spscanner_lab.training.data.examples import ExampleSource, full_stretch
from spscanner_lab.training.recipe import Recipe
from spscanner_rag.scan.reading import Reading

RECIPE = Recipe(steps=4, sequence_tokens=(256,), sequences_per_step=4, source_cap=30)


def test_an_example_holds_its_evidence_and_fits(
    documents: list[Document], reading: Reading
) -> None:
    source = ExampleSource(DocumentStore(documents), reading, RECIPE)
    places = set()
    for number in range(50):
        example = source.example(number, 256)
        sequence = example.sequence
        assert example.relevant.sum() == 1
        assert len(sequence.input_ids) <= 256 + 40  # at most one sentence more
        assert len(sequence.positions) == len(example.relevant) > 1
        assert sequence.match_classes is not None
        assert sequence.prior is not None
        assert len(sequence.match_classes) == len(sequence.input_ids)
        assert len(sequence.prior) == len(example.relevant)
        # Only the key word of a question is rare, so its sentence has the best prior.
        assert sequence.prior[:, 0].argmax() == example.relevant.argmax()
        places.add(int(example.relevant.argmax()))
    assert len(places) > 2, "the evidence should stand at different places"


def test_some_examples_are_cut_anywhere(store: DocumentStore, reading: Reading) -> None:
    source = ExampleSource(store, reading, replace(RECIPE, random_place_share=0.9))
    found = {bool(source.example(number, 128).relevant.any()) for number in range(40)}
    assert found == {True, False}


def test_what_cannot_teach_is_left_out_or_refused(
    documents: list[Document], reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examples_module, "MAX_DRAWS", 20)

    def source_of(*questions: Question) -> ExampleSource:
        return ExampleSource(
            DocumentStore([replace(documents[0], questions=questions)]), reading, RECIPE
        )

    question = documents[0].questions[0]
    useless = [
        replace(question, evidence=()),
        replace(question, answerable=False),
        replace(question, ambiguous=True),
    ]
    with pytest.raises(ValueError, match="no question with evidence"):
        source_of(*useless)
    assert source_of(*useless, question).questions_by_source == {"walks": 1}
    with pytest.raises(ValueError, match="names 'rivers'; the data has roads, walks"):
        ExampleSource(
            DocumentStore(documents),
            reading,
            replace(RECIPE, source_weights={"rivers": 1.0}),
        )
    with pytest.raises(ValueError, match="raise sequence_tokens"):
        source_of(replace(question, text="Where was the badger? " * 40)).example(0, 128)


def test_a_share_of_examples_has_no_answer(
    documents: list[Document], reading: Reading
) -> None:
    asked = [
        replace(
            d,
            questions=(
                *d.questions,
                replace(d.questions[0], text=f"Why {d.doc_id}?", answerable=False),
            ),
        )
        for d in documents
    ]
    source = ExampleSource(
        DocumentStore(asked), reading, replace(RECIPE, unanswerable_share=0.5)
    )
    examples = [source.example(number, 256) for number in range(200)]
    unanswered = [example for example in examples if not example.relevant.any()]
    assert 70 < len(unanswered) < 130


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=60),
    st.integers(0, 59),
    st.integers(50, 3000),
    st.integers(0, 99),
)
def test_a_stretch_holds_its_unit_and_keeps_to_its_room(
    lengths: list[int], centre: int, room: int, seed: int
) -> None:
    ends = np.cumsum(lengths) - 1
    centre = min(centre, len(lengths) - 1)
    first, last = full_stretch(ends, centre, room, random.Random(seed))
    assert 0 <= first <= centre <= last < len(lengths)
    assert sum(lengths[first : last + 1]) <= room + 2 * max(lengths)


@pytest.mark.parametrize("rooms", [1.0, 4.0])
def test_evidence_that_is_anywhere_in_documents_is_anywhere_in_full_stretches(
    rooms: float,
) -> None:
    ends = np.arange(1, int(200 * rooms) + 1) * 5 - 1
    draw = random.Random(0)
    shares = []
    for _ in range(4000):
        centre = draw.randrange(len(ends))
        first, last = full_stretch(ends, centre, 1000, draw)
        assert last - first + 1 >= 199
        shares.append((centre - first + 0.5) / (last - first + 1))
    np.testing.assert_allclose(
        np.histogram(shares, 10, (0, 1))[0] / 4000, 0.1, atol=0.03
    )
