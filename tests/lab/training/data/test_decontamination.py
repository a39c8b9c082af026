"""Which training documents share text with held-out ones."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_lab.evidence.questions import Document
from spscanner_lab.training.data import decontamination
from spscanner_lab.training.data.decontamination import SharedDocument, SharedTextFinder

WORDS = (
    "otter heron badger lynx river stone winter quiet seven letter harbour window"
    " copper garden".split()
)


def sentence(number: int, words: int = 12) -> str:
    """A different sentence for each number, which the word after the first tells."""
    rest = (WORDS[(number + place) % len(WORDS)] for place in range(words - 2))
    return " ".join(["The", f"{WORDS[number % len(WORDS)]}{number}", *rest]) + "."


def document(doc_id: str, *sentences: str, source: str = "made") -> Document:
    return Document(doc_id, source, "", " ".join(sentences), ())


def sentences(*numbers: int) -> list[str]:
    return [sentence(number) for number in numbers]


def shared_documents(
    training: list[Document], held_out: list[Document]
) -> list[SharedDocument]:
    return list(filter(None, map(SharedTextFinder(held_out).find, training)))


@pytest.mark.parametrize(
    ("length", "dropped"), [(99, True), (100, False), (101, False)]
)
def test_more_than_one_percent_of_either(length: int, dropped: bool) -> None:
    short, long = sentences(*range(length)), sentences(0, *range(1000, 1200))
    for training, held_out in ((short, long), (long, short)):
        found = shared_documents([document("t", *training)], [document("h", *held_out)])
        assert [shared.doc_id for shared in found] == ["t"] * dropped


def test_case_and_white_space_do_not_matter() -> None:
    training = document(
        "t", sentence(0).upper().replace(" ", " \n\t"), *sentences(1, 2)
    )
    (found,) = shared_documents([training], [document("h", *sentences(0, 3))])
    assert found.share == 1 / 3
    assert found.example == sentence(0).upper().replace(" ", " \n\t")


def test_short_sentences_are_left_out_of_account() -> None:
    for words, shares in ((9, []), (10, [20 / 21])):
        short = [sentence(number, words) for number in range(20)]
        found = shared_documents(
            [document("t", *short, sentence(20))], [document("h", *short, sentence(21))]
        )
        assert [shared.share for shared in found] == shares


def test_a_text_that_is_the_same_without_a_long_sentence() -> None:
    training = [
        document("t", "An otter swims. It rains."),
        document("u", "An otter swims. It snows."),
    ]
    (found,) = shared_documents(training, [document("h", "an otter\nswims. IT RAINS.")])
    assert (found.doc_id, found.held_out_doc_id, found.share) == ("t", "h", 1.0)
    assert found.example == "An otter swims."


def test_odd_characters() -> None:
    assert (
        shared_documents([document("t", ""), document("u", " \n")], [document("h", "")])
        == []
    )
    odd = document("t", "\ud800 " + sentence(0))
    assert [
        shared.doc_id for shared in shared_documents([odd], [replace(odd, doc_id="h")])
    ] == ["t"]


numbers = st.lists(st.integers(0, 12), max_size=8)
corpora = st.lists(numbers, max_size=5)


@settings(max_examples=60)
@given(corpora, corpora, st.sampled_from([0.0, 0.2, 0.5, 0.99]))
def test_against_sets_of_sentences(
    training: list[list[int]], held_out: list[list[int]], most: float
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decontamination, "MAX_SHARE", most)
        check_against_sets(training, held_out, most)


def check_against_sets(
    training: list[list[int]], held_out: list[list[int]], most: float
) -> None:
    made = [
        [document(f"{i}", *sentences(*own)) for i, own in enumerate(part)]
        for part in (training, held_out)
    ]
    found = {s.doc_id: s for s in shared_documents(*made)}
    assert list(found) == sorted(found, key=int), "in the order of the documents"
    for number, own in enumerate(training):
        mine, others = set(own), [set(other) for other in held_out]
        common = mine & set(itertools.chain(*held_out))
        share = len(common) / len(mine) if mine else 0
        reverse = max(
            (len(mine & other) / len(other) for other in others if other), default=0
        )
        same = bool(own) and own in held_out
        assert (str(number) in found) == (max(share, reverse, same) > most)
        if str(number) in found and not same:
            shared = found[str(number)]
            assert shared.share == share
            overlaps = [len(mine & other) for other in others]
            assert int(shared.held_out_doc_id) == overlaps.index(max(overlaps))
            assert shared.example in made[1][int(shared.held_out_doc_id)].text
