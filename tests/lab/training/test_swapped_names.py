"""Near misses of a text's own names."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_lab.training.swapped_names import (
    SWAPPED,
    names_of,
    swapped_questions,
)

CHAT = "\n".join(
    f"[12:0{minute}] {name}: {said}"
    for minute, (name, said) in enumerate(
        [
            ("Ann", "who pays?"),
            ("Bob", "not me."),
            ("Ann", "then I pay."),
            ("Bob", "thanks, and good night."),
        ]
    )
)


def test_speakers_are_names_without_their_times() -> None:
    assert names_of(CHAT) == {"Ann": 2, "Bob": 2}


@pytest.mark.parametrize(
    "text",
    [
        "So Ann came. Bob went.",  # each once inside a sentence
        "He said What. She said What. And what then?",  # also a small word
        "",
    ],
)
def test_what_is_no_name(text: str) -> None:
    assert names_of(text) == {}


def test_a_name_takes_the_place_of_another() -> None:
    names = {"Ann": 3, "Bob": 2, "Carl": 2}
    swapped = swapped_questions("What did Ann promise?", names, random.Random(0))
    assert sorted(swapped) == ["What did Bob promise?", "What did Carl promise?"]


def test_two_names_are_exchanged() -> None:
    names = {"Ann": 3, "Bob": 2}
    swapped = swapped_questions("What did Ann owe Bob?", names, random.Random(0))
    assert swapped == ["What did Bob owe Ann?"]


def test_a_part_of_a_longer_name_stays() -> None:
    names = {"Ann": 3, "Lee": 2, "Ann Lee": 2, "Bob Ray": 2}
    swapped = swapped_questions("When did Ann Lee leave?", names, random.Random(0))
    assert swapped == ["When did Bob Ray leave?"]
    assert swapped_questions("Was Lee-on-Sea sold?", names, random.Random(0)) == []


def test_names_of_the_same_look_are_preferred() -> None:
    names = {"MATT": 9, "LAURA": 2, "Riverside": 9}
    swapped = swapped_questions("Did MATT agree?", names, random.Random(0))
    assert swapped == ["Did LAURA agree?"]


@given(
    st.lists(
        st.sampled_from(["Ann", "Bob", "Ann Lee", "who", "pays", "?"]), max_size=8
    ),
    st.integers(0, 9),
)
def test_near_misses_are_few_and_different(words: list[str], seed: int) -> None:
    question = " ".join(words)
    names = {"Ann": 2, "Bob": 3, "Ann Lee": 2, "Carl": 2, "Dora": 4}
    swapped = swapped_questions(question, names, random.Random(seed))
    assert len(swapped) <= SWAPPED
    assert len(set(swapped)) == len(swapped)
    assert question not in swapped
