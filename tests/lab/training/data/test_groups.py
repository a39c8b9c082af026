import re
from dataclasses import replace

import numpy as np
import pytest

from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.lab.training.data import groups as groups_module
from spscanner_rag.lab.training.data.documents import DocumentStore
from spscanner_rag.lab.training.data.examples import ExampleSource
from spscanner_rag.lab.training.data.groups import MOST_STRETCHES
from spscanner_rag.lab.training.data.stretches import Example
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.scan.prepare import Reading
from tests.lab.training.conftest import ANIMALS

RECIPE = Recipe(
    sequence_tokens=(256,),
    sequences_per_step=4,
    source_cap=30,
    group_share=0.9999,
    group_tokens=150,
    group_documents=3,
    group_hard=1,
)


def groups(
    documents: list[Document], reading: Reading, recipe: Recipe = RECIPE, n: int = 30
) -> list[Example]:
    source = ExampleSource(DocumentStore(documents), reading, recipe)
    return [source.example(number, 256) for number in range(n)]


def read_text(example: Example, reading: Reading) -> str:
    return reading.tokenizer.decode(example.sequence.input_ids.tolist())


def days(example: Example, reading: Reading) -> set[str]:
    """Which documents the tokens after the question come from: every sentence names its document's day."""
    return set(re.findall(r"On day (\d+)", read_text(example, reading)))


def test_a_group_has_the_evidence_in_its_first_stretch_and_other_documents_in_the_rest(
    distinct: list[Document], reading: Reading
) -> None:
    for group in groups(distinct, reading):
        first, *others = group.stretches
        lengths = [len(stretch.sequence.input_ids) for stretch in group.stretches]
        assert len(lengths) >= 2
        assert max(lengths) <= RECIPE.group_tokens, "a group fits one pass"
        assert max(lengths) * len(lengths) <= RECIPE.group_documents * RECIPE.group_tokens
        assert first.relevant.sum() == 1
        assert not any(other.relevant.any() for other in others)
        own = days(first, reading)
        assert len(own) == 1
        seen = [days(other, reading) for other in others]
        assert all(len(day) == 1 and day != own for day in seen)
        assert len(set().union(*seen)) == len(others), "no document is there twice"


def test_short_documents_make_larger_groups(distinct: list[Document], reading: Reading) -> None:
    short = [
        replace(d, text=d.text[: d.questions[0].evidence[0][1]], questions=d.questions[:1]) for d in distinct
    ]
    sizes = [len(group.stretches) for group in groups(short, reading)]
    assert min(sizes) > RECIPE.group_documents
    assert max(sizes) <= MOST_STRETCHES * RECIPE.group_documents


def test_a_group_is_the_same_in_every_run(distinct: list[Document], reading: Reading) -> None:
    mixed = replace(RECIPE, group_share=0.5, hard_place_share=0.5, collection_share=0.5, spread_share=0.5)
    one, other = (ExampleSource(DocumentStore(distinct), reading, mixed) for _ in range(2))
    sizes = set()
    for number in (7, 3, 11, 4, 5, 0):
        first = one.example(number, 256)
        other.example(number + 1, 256)  # what was drawn before makes no difference
        for left, right in zip(first.stretches, other.example(number, 256).stretches, strict=True):
            np.testing.assert_array_equal(left.sequence.input_ids, right.sequence.input_ids)
            np.testing.assert_array_equal(left.sequence.prior, right.sequence.prior)
            np.testing.assert_array_equal(left.relevant, right.relevant)
        sizes.add(len(first.stretches) > 1)
    assert sizes == {True, False}


def test_hard_documents_are_the_nearest_to_the_question(
    distinct: list[Document], reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups_module, "_HARD_CHOICE", 1)
    near = [replace(d, text=f"{d.text} Zanzibar.") if d.doc_id == "roads-7" else d for d in distinct]
    asked = [
        replace(
            d,
            questions=tuple(
                replace(q, text=f"{q.text} Zanzibar") for q in d.questions if d.doc_id == "roads-3"
            ),
        )
        for d in near
        if d.source == "roads"
    ]
    shares = {}
    for hard in (0, 1):
        found = groups(asked, reading, replace(RECIPE, group_documents=2, group_hard=hard))
        shares[hard] = np.mean([days(group.others[0], reading) == {"7"} for group in found])
    assert shares[1] == 1
    assert shares[0] < 0.5


def test_no_stretch_of_another_document_has_the_answer_or_belongs_to_the_same_text(
    distinct: list[Document], reading: Reading
) -> None:
    roads = [replace(d, title=f"Road {n}") for n, d in enumerate(distinct[6:14])]
    roads[1] = replace(roads[1], title="ROAD 0.")  # the title of the first
    roads[3] = replace(roads[3], doc_id="roads-piece.2")
    roads[2] = replace(roads[2], doc_id="roads-piece.1")
    answer = replace(roads[0].questions[0], answers=("The Road QUICKLY",))
    only = [replace(roads[0], questions=(answer,)), replace(roads[2], questions=roads[2].questions[:1])]
    bare = [replace(d, questions=()) for d in roads]
    recipe = replace(RECIPE, group_documents=8, group_hard=3)
    unwanted = {0: {"1"}, 2: {"3"}}
    changed = replace(bare[4], text=bare[4].text.replace("slowly", "quickly"))
    for place, asked in zip((0, 2), only, strict=True):
        corpus = [asked if n == place else (changed if n == 4 else d) for n, d in enumerate(bare)]
        seen = {
            day for group in groups(corpus, reading, recipe) for s in group.others for day in days(s, reading)
        }
        assert not seen & unwanted[place]
        assert ("4" in seen) == (place == 2)
        assert len(seen) >= 4


def test_the_lexical_statistics_are_those_of_the_group_or_of_more_documents(
    distinct: list[Document], reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {d.doc_id.split("-")[1]: d.text for d in distinct if d.source == "roads"}
    roads = [d for d in distinct if d.source == "roads"]
    units = {day: reading.prepare(text) for day, text in texts.items()}
    for alone in (1.0, 0.0):
        monkeypatch.setattr(groups_module, "ALONE_SHARE", alone)
        same = []
        for group in groups(roads, reading, n=12):
            members = [next(iter(days(stretch, reading))) for stretch in group.stretches]
            question = read_text(group, reading).split("\n")[0]
            collection = CollectionIndex.of([[u.model_text for u in units[day].units] for day in members])
            statistics = reading.statistics(question, collection)
            asked = reading.pair(question, units[members[1]], statistics)
            prior = group.others[0].sequence.prior
            assert prior is not None
            assert asked.prior is not None
            same.append(
                any(np.allclose(prior, asked.prior[i : i + len(prior)]) for i in range(11 - len(prior)))
            )
        assert all(same) if alone else not all(same)


def test_a_stretch_is_that_of_the_whole_document(reading: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a part of a long document is tokenized; scores at the edges of the stretch are the document's too."""
    monkeypatch.setattr(groups_module, "ALONE_SHARE", 1.0)
    documents = []
    for number in range(4):
        sentences = [
            f"On day {number} a {ANIMALS[(7 * place * place + number) % 10]} came by road {place}."
            for place in range(90)
        ]
        text, sentence = " ".join(sentences), sentences[20 * number + 5]
        start = text.index(sentence)
        question = Question("q", f"Which badger, heron or otter came on day {number}?", ((start, start + 9),))
        documents.append(Document(str(number), "days", "", text, (question,)))
    whole = [reading.prepare(document.text) for document in documents]
    recipe = replace(RECIPE, hard_place_share=0.5)
    for group in groups(documents, reading, recipe, n=20):
        members = [int(next(iter(days(stretch, reading)))) for stretch in group.stretches]
        collection = CollectionIndex.of(
            [[unit.model_text for unit in whole[number].units] for number in sorted(set(members))]
        )
        query = documents[members[0]].questions[0].text
        statistics = reading.statistics(query, collection)
        for number, stretch in zip(members, group.stretches, strict=True):
            first = int(re.findall(r"by road (\d+)", read_text(stretch, reading))[0])
            pair = reading.pair(query, whole[number], statistics)
            same = pair.sequence(first, first + len(stretch.relevant) - 1)
            np.testing.assert_array_equal(stretch.sequence.input_ids, same.input_ids)
            assert stretch.sequence.prior is not None
            assert same.prior is not None
            np.testing.assert_allclose(stretch.sequence.prior, same.prior, atol=1e-5)


def test_a_stretch_of_the_own_document_around_a_hard_negative_can_be_a_member(
    distinct: list[Document], reading: Reading
) -> None:
    recipe = replace(RECIPE, hard_place_share=0.999, group_tokens=90)
    found = groups(distinct, reading, recipe)
    beside = 0
    for group in found:
        own = days(group, reading)
        second = [other for other in group.others if days(other, reading) == own]
        assert len(second) <= 1
        for other in second:
            animals = [set(re.findall(r"a (\w+) crossed", read_text(s, reading))) for s in (group, other)]
            assert not animals[0] & animals[1], "the two stretches share no sentence"
            beside += 1
    assert beside > len(found) / 2


def test_groups_that_cannot_be_made(
    documents: list[Document], distinct: list[Document], reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spscanner_rag.lab.training.data.examples.MAX_DRAWS", 5)
    with pytest.raises(ValueError, match="makes a group; raise group_tokens"):
        groups(distinct, reading, replace(RECIPE, group_tokens=12), 1)
    # all documents have the same questions
    with pytest.raises(ValueError, match=r"group_share is 0\.9999, but no source"):
        ExampleSource(DocumentStore(documents), reading, RECIPE)
    with pytest.raises(ValueError, match="group_sources names 'rivers'; the data has roads, walks"):
        ExampleSource(DocumentStore(distinct), reading, replace(RECIPE, group_sources=("rivers",)))
    mixed = [d for d in distinct if d.source == "roads"] + [d for d in documents if d.source == "walks"]
    for recipe in (RECIPE, replace(RECIPE, group_sources=("roads",))):
        found = groups(mixed, reading, recipe)
        assert all("on day" in read_text(group, reading).split("\n")[0] for group in found)
