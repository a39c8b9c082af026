import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.lab.training.data import examples as examples_module
from spscanner_rag.lab.training.data.documents import DocumentStore
from spscanner_rag.lab.training.data.examples import ExampleSource, OtherWords
from spscanner_rag.lab.training.data.questions import Drawn
from spscanner_rag.lab.training.data.stretches import LEAST_STRETCH_SHARE, full_stretch, spread_stretch
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lexical.match import MatchOptions
from spscanner_rag.lexical.word_vectors import WordVectors
from spscanner_rag.scan.prepare import Reading

RECIPE = Recipe(steps=4, sequence_tokens=(256,), sequences_per_step=4, source_cap=30)


def test_an_example_holds_its_evidence_and_fits(documents: list[Document], reading: Reading) -> None:
    source = ExampleSource(DocumentStore(documents), reading, RECIPE)
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
        assert sequence.prior[:, 0].argmax() == example.relevant.argmax()
        places.add(int(example.relevant.argmax()))
    assert len(places) > 2, "the evidence should stand at different places"


@pytest.mark.parametrize("key", ["random_place_share", "hard_place_share"])
def test_some_examples_are_cut_elsewhere(distinct: list[Document], reading: Reading, key: str) -> None:
    """Anywhere, or around a hard negative: all sentences share the word "day" with the question."""
    source = ExampleSource(DocumentStore(distinct), reading, replace(RECIPE, **{key: 0.9}))
    found = [source.example(number, 128).relevant.any() for number in range(40)]
    assert any(found)
    assert not all(found)


def test_the_statistics_of_some_examples_are_those_of_several_documents(
    distinct: list[Document], reading: Reading
) -> None:
    """Every document has one badger; among the documents it is the day that is rare."""
    priors = {}
    for share in (0.0, 0.5):
        recipe = replace(RECIPE, collection_share=share)
        source = ExampleSource(DocumentStore(distinct), reading, recipe)
        examples = [source.example(number, 512) for number in range(30)]
        found = [e.sequence.prior.max() for e in examples if e.sequence.prior is not None]
        assert len(found) == 30
        priors[share] = np.array(found)
    assert len(np.unique(priors[0.0].round(2))) == 1
    other = (priors[0.5].round(2) != priors[0.0].round(2)).mean()
    assert 0.25 < other < 0.75


def test_what_cannot_teach_is_left_out_or_refused(
    documents: list[Document], reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examples_module, "MAX_DRAWS", 20)

    def source_of(*questions: Question) -> ExampleSource:
        return ExampleSource(DocumentStore([replace(documents[0], questions=questions)]), reading, RECIPE)

    question = documents[0].questions[0]
    changes = ({"evidence": ()}, {"answerable": False}, {"ambiguous": True})
    useless = [replace(question, **change) for change in changes]  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no question with evidence"):
        source_of(*useless)
    assert source_of(*useless, question).questions_by_source == {"walks": 1}
    with pytest.raises(ValueError, match="names 'rivers'; the data has roads, walks"):
        ExampleSource(DocumentStore(documents), reading, replace(RECIPE, source_weights={"rivers": 1.0}))
    with pytest.raises(ValueError, match="raise sequence_tokens"):
        source_of(replace(question, text="Where was the badger? " * 40)).example(0, 128)


def test_a_share_of_examples_has_no_answer(documents: list[Document], reading: Reading) -> None:
    asked = [
        replace(
            d, questions=(*d.questions, replace(d.questions[0], text=f"Why {d.doc_id}?", answerable=False))
        )
        for d in documents
    ]
    source = ExampleSource(DocumentStore(asked), reading, replace(RECIPE, unanswerable_share=0.5))
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
    for stretch in (full_stretch, spread_stretch):
        first, last = stretch(ends, centre, room, random.Random(seed))
        assert 0 <= first <= centre <= last < len(lengths)
        assert sum(lengths[first : last + 1]) <= room + 2 * max(lengths)


@pytest.mark.parametrize(
    ("place", "rooms", "lowest", "highest"),
    [
        (0.5, 0.5, 0.0, 1.0),
        (0.25, 1.0, 0.0, 0.5),  # a stretch of half a room, of which half is before it
        (0.1, 4.0, 0.0, 0.8),
        (0.9, 4.0, 0.2, 1.0),
    ],
)
def test_every_place_in_a_spread_stretch_is_as_likely(
    place: float, rooms: float, lowest: float, highest: float
) -> None:
    room = 1000
    units = int(rooms * room / 5)  # the document's length, in sentences of five tokens
    ends = np.arange(1, units + 1) * 5 - 1
    centre, draw = int(place * units), random.Random(0)
    shares, lengths = [], []
    for _ in range(3000):
        first, last = spread_stretch(ends, centre, room, draw)
        shares.append((centre - first + 0.5) / (last - first + 1))
        lengths.append((last - first + 1) * 5)
    counts = np.histogram(shares, 5, (lowest, highest))[0] / 3000
    np.testing.assert_allclose(counts, 0.2, atol=0.03)
    assert min(lengths) >= LEAST_STRETCH_SHARE * min(room, units * 5) - 10
    assert max(lengths) <= room + 5


@pytest.mark.parametrize("rooms", [1.0, 4.0])
def test_evidence_that_is_anywhere_in_documents_is_anywhere_in_full_stretches(rooms: float) -> None:
    ends = np.arange(1, int(200 * rooms) + 1) * 5 - 1
    draw = random.Random(0)
    shares = []
    for _ in range(4000):
        centre = draw.randrange(len(ends))
        first, last = full_stretch(ends, centre, 1000, draw)
        assert last - first + 1 >= 199
        shares.append((centre - first + 0.5) / (last - first + 1))
    np.testing.assert_allclose(np.histogram(shares, 10, (0, 1))[0] / 4000, 0.1, atol=0.03)


def test_early_evidence_is_late_in_some_sequences_only_where_that_is_wanted(
    documents: list[Document], reading: Reading
) -> None:
    early = DocumentStore([replace(d, questions=d.questions[2:3]) for d in documents])  # sentence 3 of 10
    shares: dict[float, list[float]] = {}
    for spread in (0.0, 0.99):
        source = ExampleSource(early, reading, replace(RECIPE, spread_share=spread))
        found = [source.example(number, 1000).relevant for number in range(60)]
        shares[spread] = [relevant.argmax() / (len(relevant) - 1) for relevant in found]
    assert set(shares[0.0]) == {2 / 9}  # the documents fit whole
    assert min(shares[0.99]) < 0.15
    assert max(shares[0.99]) > 0.4


WORDS = ["built", "constructed", "erected", "building", "builder", "badger", "animal", "river", "the", "1908"]


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    """Words that mean about the same have nearly the same direction: built to builder, badger and animal."""
    directions = np.eye(4)[[0, 0, 0, 0, 0, 1, 1, 2, 0, 0]]
    return WordVectors.of_vectors(WORDS, directions + 0.01 * np.arange(10)[:, None])


def test_words_are_exchanged_for_near_ones(vectors: WordVectors) -> None:
    other, draw = OtherWords(vectors, 1), random.Random(0)
    seen = Counter(other.text("Who built the river wall in 1908, Anne?", draw) for _ in range(400))
    # "building" has the same beginning, "river" has no near word, "wall" is unknown
    assert set(seen) == {
        f"Who {word} the river wall in 1908, Anne?" for word in ("built", "constructed", "erected")
    }
    assert 200 < seen["Who built the river wall in 1908, Anne?"] < 280  # six in ten words stay


@pytest.mark.parametrize("word", ["Built", "BUILT", "the", "1908", "river", "unheard", ""])
def test_what_stays(vectors: WordVectors, word: str) -> None:
    other, draw = OtherWords(vectors, 1), random.Random(0)
    assert {other.text(f"{word} x?", draw) for _ in range(50)} == {f"{word} x?"}


def test_a_share_of_the_questions(vectors: WordVectors) -> None:
    other, draw = OtherWords(vectors, 0.25), random.Random(0)
    drawn = Drawn(3, Question("q", "Was it built, built and built?", evidence=((0, 4),)), True)
    changed = [other.drawn(drawn, draw) for _ in range(400)]
    assert 50 < sum(each.question.text != drawn.question.text for each in changed) < 130
    assert {(each.document, each.question.qid, each.question.evidence) for each in changed} == {
        (3, "q", ((0, 4),))
    }
    assert drawn.question.text == "Was it built, built and built?"


@pytest.mark.slow
@pytest.mark.parametrize("group_share", [0.0, 0.9])
def test_examples_ask_in_other_words(
    documents: list[Document], reading: Reading, vectors: WordVectors, group_share: float
) -> None:
    documents = [  # whose questions are no other document's
        replace(
            document, questions=[replace(q, text=f"{q.text} {document.doc_id}") for q in document.questions]
        )
        for document in documents
    ]

    def questions(share: float) -> list[bool]:
        options = MatchOptions(surroundings=True, vectors=vectors)
        lexical = Reading(reading.tokenizer, reading.segmenter, "last_character", 64, True, True, options)
        recipe = Recipe(
            sequence_tokens=(256,), other_words_share=share, group_share=group_share, group_tokens=150,
            lexical_match=True, lexical_prior=True, lexical_surroundings=True, lexical_soft=True,
        )  # fmt: skip
        source = ExampleSource(DocumentStore(documents), lexical, recipe)
        ids = (source.example(number, 256).sequence.input_ids.tolist() for number in range(60))
        return ["Where was the animal" in reading.tokenizer.decode(each) for each in ids]

    assert not any(questions(0.0))
    assert any(questions(0.99))
    assert questions(0.99) == questions(0.99)
