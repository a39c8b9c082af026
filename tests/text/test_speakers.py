"""Who says a sentence, and whose words a question asks for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.text.speakers import NOBODY, asked_speakers, speakers_of
from spscanner_rag.text.text_units import units_of_text

NAMES = ("Ann Lee", "Ben", "Professor D", "PhD A", "PhD B", "CHAIR", "Will")


def asked(question: str) -> list[str]:
    return [NAMES[number] for number in sorted(asked_speakers(question, NAMES))]


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("What did Ann Lee promise?", ["Ann Lee"]),
        ("What did Ann promise, and why?", ["Ann Lee"]),
        ("What is Ben's plan?", ["Ben"]),
        ("According to Ben, who left?", ["Ben"]),
        ("What did the Professor think of it?", ["Professor D"]),
        ("What did PhD B say?", ["PhD B"]),
        ("What did Ann and Ben decide?", ["Ann Lee", "Ben"]),
        ("what did ben buy?", ["Ben"]),
        ("What did the chair rule?", ["CHAIR"]),
        ("Who did Ben see?", ["Ben"]),
        ("Ben's song for the fair", ["Ben"]),
        ("what did Ben write.", ["Ben"]),
        ("How does Will travel?", ["Will"]),
        ("What news is there about Ben's leg?", ["Ben"]),
    ],
)
def test_whose_words_are_asked_for(question: str, names: list[str]) -> None:
    assert asked(question) == names


@pytest.mark.parametrize(
    "question",
    [
        "What was promised?",
        "Who told Ben?",
        "Who is Ben?",
        "What did they say about Ann?",
        "What did PhD say?",  # two have it
        "when will it rain?",
        "Who thanked Ann Lee?",
        "What did Bennett say?",
        "Ben wrote a song for the fair.",
        "",
    ],
)
def test_nobody_is_asked_for(question: str) -> None:
    assert asked(question) == []


def test_each_unit_of_a_chat_has_its_speaker() -> None:
    chat = "[12:01] Ann: Is it shut?\n[12:02] Ben: It is.\n[12:05] Ann: Good.\n"
    chat += "[12:06] Ben: Bye.\n"
    speakers = speakers_of([unit.model_text for unit in units_of_text(chat)])
    assert speakers.names == ("Ann", "Ben")
    assert speakers.of_sentences.tolist() == [0, 1, 0, 1]


def test_sentences_of_a_long_turn_have_it_too() -> None:
    turn = "I left the house at noon and went to the mill by the river. " * 30
    chat = "".join(f"{name}: {turn}\n" for name in ("Ann", "Ben", "Ann", "Ben", "Ann"))
    units = units_of_text(chat)
    assert len(units) > 5
    speakers = speakers_of([unit.model_text for unit in units])
    assert speakers.names == ("Ann", "Ben")
    assert NOBODY not in speakers.of_sentences


def test_a_heading_before_a_turn_does_not_hide_its_speaker() -> None:
    chat = ["Session 1\nAnn: Hello.", "Ben: Hello.", "Ann: Bye.", "Ben: Bye."]
    assert speakers_of(chat).of_sentences.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    "sentences",
    [
        [],
        ["It rained.", "Note: It snowed.", "They left.", "Note: All of them."],
        ["Ann: I left.", "Ann: I came back.", "Ann: I slept."],
        ["Ann: I left.", "Ben: I stayed.", "It rained."],
    ],
)
def test_other_texts_have_no_speakers(sentences: list[str]) -> None:
    speakers = speakers_of(sentences)
    assert speakers.names == ()
    assert (speakers.of_sentences == NOBODY).all()
    assert len(speakers.of_sentences) == len(sentences)


@given(st.text(max_size=60), st.lists(st.text(max_size=12), max_size=4))
def test_any_question_and_any_names_are_read(question: str, names: list[str]) -> None:
    numbers = asked_speakers(question, names)
    assert all(0 <= number < len(names) for number in numbers)


@given(st.lists(st.text(max_size=40), max_size=6))
def test_any_sentences_are_read(sentences: list[str]) -> None:
    speakers = speakers_of(sentences)
    assert len(speakers.of_sentences) == len(sentences)
    assert set(speakers.of_sentences) <= {NOBODY, *range(len(speakers.names))}


@pytest.mark.parametrize("hostile", ["!", "a", "Ann, ", "according to "])
def test_a_long_question_is_read_in_linear_time(hostile: str) -> None:
    long_part = hostile * (400_000 // len(hostile))
    assert asked_speakers(f"{long_part}x. Ben", ("Ben", "Anna")) == {0}


def test_many_names_are_looked_for_without_a_pattern_each() -> None:
    names = [f"Ann{number} Bee{number}" for number in range(50_000)]
    assert asked_speakers("What did Bee77 say?", names) == {77}
