from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from spscanner_rag.evaluation.data import Document
from spscanner_rag.reading import Reading
from spscanner_rag.segmentation import SentenceSegmenter
from spscanner_rag.training.examples import ExampleSource
from spscanner_rag.training.recipe import Recipe
from spscanner_rag.training.teacher import Embedder, TeacherScores

RECIPE = Recipe(steps=4, sequence_tokens=(256,), sequences_per_step=4, source_cap=30)


@pytest.fixture
def reading(tiny_tokenizer: Tokenizer) -> Reading:
    return Reading(tiny_tokenizer, SentenceSegmenter(), "last_character", 64, True, True)


def test_an_example_is_the_same_in_every_run(documents: list[Document], reading: Reading) -> None:
    one, other = ExampleSource(documents, reading, RECIPE), ExampleSource(documents, reading, RECIPE)
    other.example(0, 256)  # what was drawn before makes no difference
    for number in (5, 3):
        first, second = one.example(number, 256), other.example(number, 256)
        np.testing.assert_array_equal(first.sequence.input_ids, second.sequence.input_ids)
        np.testing.assert_array_equal(first.relevant, second.relevant)
    assert not np.array_equal(one.example(1, 256).sequence.input_ids, one.example(2, 256).sequence.input_ids)


def test_an_example_holds_its_evidence_and_fits(documents: list[Document], reading: Reading) -> None:
    source = ExampleSource(documents, reading, RECIPE)
    places = set()
    for number in range(50):
        example = source.example(number, 256)
        sequence = example.sequence
        assert example.relevant.sum() == 1
        assert len(sequence.input_ids) <= 256 + 40  # at most a sentence more
        assert len(sequence.positions) == len(example.relevant) > 1
        assert sequence.match_classes is not None
        assert sequence.prior is not None
        assert len(sequence.match_classes) == len(sequence.input_ids)
        assert len(sequence.prior) == len(example.relevant)
        # The key word is the only one of the question that is rare, so its sentence has the best prior.
        assert sequence.prior.argmax() == example.relevant.argmax()
        places.add(int(example.relevant.argmax()))
    assert len(places) > 2, "the evidence should stand at different places"


def test_some_examples_are_cut_anywhere(documents: list[Document], reading: Reading) -> None:
    source = ExampleSource(documents, reading, replace(RECIPE, random_place_share=0.9))
    found = [source.example(number, 128).relevant.any() for number in range(30)]
    assert any(found)
    assert not all(found)


def test_only_the_first_documents_of_a_source_are_taught(
    documents: list[Document], reading: Reading, tmp_path: Path, ones: Embedder
) -> None:
    teacher = TeacherScores("ones", tmp_path, lambda name: ones)
    source = ExampleSource(documents, reading, replace(RECIPE, teacher_documents=2), teacher)
    examples = [source.example(number, 256) for number in range(60)]
    taught = [example for example in examples if example.teacher is not None]
    assert 0 < len(taught) < len(examples)
    for example in taught:
        assert example.teacher is not None
        np.testing.assert_array_equal(example.teacher, np.full(len(example.relevant), 2.0, np.float32))
    assert 1 <= len(list(tmp_path.glob("*.npz"))) <= 4


def test_sources_are_weighed(documents: list[Document], reading: Reading) -> None:
    source = ExampleSource(documents, reading, replace(RECIPE, source_weights={"roads": 0.5}))
    assert source.questions_by_source == {"roads": 48, "walks": 24}
    assert source.source_weights == {"roads": 0.5, "walks": pytest.approx((24 / 30) ** 0.7)}


def test_questions_that_cannot_teach_are_left_out(documents: list[Document], reading: Reading) -> None:
    question = documents[0].questions[0]
    useless = [
        replace(question, evidence=()),
        replace(question, answerable=False),
        replace(question, ambiguous=True),
    ]
    alone = [replace(documents[0], questions=tuple(useless))]
    with pytest.raises(ValueError, match="no question with evidence"):
        ExampleSource(alone, reading, RECIPE)
    kept = ExampleSource([replace(alone[0], questions=(*useless, question))], reading, RECIPE)
    assert kept.questions_by_source == {"walks": 1}


def test_unknown_source_names_and_hopeless_lengths_are_refused(
    documents: list[Document], reading: Reading
) -> None:
    with pytest.raises(ValueError, match="names 'rivers'; the data has roads, walks"):
        ExampleSource(documents, reading, replace(RECIPE, source_weights={"rivers": 1.0}))
    long_question = replace(documents[0].questions[0], text="Where was the badger? " * 40)
    source = ExampleSource([replace(documents[0], questions=(long_question,))], reading, RECIPE)
    with pytest.raises(ValueError, match="raise sequence_tokens"):
        source.example(0, 128)
