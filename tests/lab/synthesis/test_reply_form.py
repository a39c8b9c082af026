"""Replies in lines with keywords: what is read, what is refused and why."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_lab.synthesis.reply_form import (
    Field,
    Link,
    MalformedReplyError,
    form_of_reply,
    read_reply,
)

LABELS = [Field("relevant", "yes or no"), Field("indices", "indices", 9)]
LINKS = [Field("links", "links", 9)]
QUESTION = [
    Field("question", "text"),
    Field("answer", "text"),
    Field("indices", "indices", 20),
]


@pytest.mark.parametrize(
    ("reply", "fields", "values"),
    [
        ("RELEVANT: YES\nINDICES: 3, 1, 3", LABELS, [True, [1, 3]]),
        ("**RELEVANT:** no.\n- INDICES: none", LABELS, [False, []]),
        ("<think>RELEVANT: NO</think>RELEVANT: YES\nINDICES: [0]", LABELS, [True, [0]]),
        (
            "LINKS 2: Same  ship.\nLINKS 8: Port.",
            LINKS,
            [[Link(2, "Same ship."), Link(8, "Port.")]],
        ),
        ("LINKS: NONE", LINKS, [[]]),
        (
            "QUESTION: Who  came?\nANSWER: NO\nINDICES: 1",
            QUESTION,
            ["Who came?", "NO", [1]],
        ),
    ],
)
def test_what_is_read(reply: str, fields: list[Field], values: list[object]) -> None:
    assert list(read_reply(reply, fields).values()) == values


@pytest.mark.parametrize(
    ("reply", "fields", "reason"),
    [
        ("**Relevant**: no", LABELS[:1], "the reply lacks a part"),
        ("RELEVANT: YES", LABELS, "the reply lacks a part"),
        ("RELEVANT: YES\nRELEVANT: NO\nINDICES: 1", LABELS, "the reply lacks a part"),
        ("RELEVANT: MAYBE\nINDICES: 1", LABELS, "the reply lacks a part"),
        *(
            (f"RELEVANT: YES\nINDICES: {given}", LABELS, "an index is out of range")
            for given in ("one", "9", "-1", "1.0", "٣", "", "9" * 5000)
        ),
        ("LINKS: same ship", LINKS, "an index is out of range"),
        ("LINKS 2:", LINKS, "the reply lacks a part"),
        ("QUESTION:\nANSWER: a\nINDICES: NONE", QUESTION, "the reply lacks a part"),
        ("I'm sorry, I cannot do that.", LINKS, "the model refused"),
        ("As an AI, I won't.", LINKS, "the model refused"),
        ("Die Antwort ist ja.", LABELS, "the reply lacks a part"),
    ],
)
def test_what_is_refused(reply: str, fields: list[Field], reason: str) -> None:
    with pytest.raises(MalformedReplyError) as caught:
        read_reply(reply, fields)
    assert caught.value.reason == reason


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(reply: str) -> None:
    for fields in (LABELS, LINKS, QUESTION):
        try:
            values = read_reply(reply, fields)
        except MalformedReplyError:
            continue
        assert set(values) == {field.name for field in fields}


def test_the_form_is_stated() -> None:
    assert "LINKS and a number" in form_of_reply(LINKS)
