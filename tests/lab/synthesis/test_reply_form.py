"""Replies in both forms: what is read, and what is refused with which reason."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.lab.synthesis.reply_form import (
    Field,
    Form,
    Link,
    MalformedReplyError,
    read,
    schema,
    stated,
)
from spscanner_rag.lab.synthesis.scripted import scripted_reply

LABELS = [Field("relevant", "yes or no"), Field("indices", "indices", 9)]
LINKS = [Field("links", "links", 9)]
SHIP, FIRST = Link(2, "Same ship."), {"relevant": True, "indices": [0]}
QUESTION = [Field("question", "text"), Field("answer", "text"), Field("indices", "indices", 20)]


@pytest.mark.parametrize(
    ("form", "reply", "fields", "values"),
    [
        ("keywords", "RELEVANT: YES\nINDICES: 3, 1, 3", LABELS, {"relevant": True, "indices": [1, 3]}),
        ("keywords", "**Relevant**: no", LABELS[:1], None),
        ("keywords", "**RELEVANT:** no.\n- INDICES: none", LABELS, {"relevant": False, "indices": []}),
        ("keywords", "<think>RELEVANT: NO</think>RELEVANT: YES\nINDICES: 0", LABELS, FIRST),
        ("keywords", "LINKS 2: Same ship.\nLINKS 8: Same port.", LINKS, {"links": [SHIP, Link(8, "Same port.")]}),
        ("keywords", "LINKS: NONE", LINKS, {"links": []}),
        ("json", '{"relevant": "yes", "indices": [1]}', LABELS, {"relevant": True, "indices": [1]}),
        ("json", '```json\n{"relevant": "no", "indices": []}\n```', LABELS, {"relevant": False, "indices": []}),
        ("json", '{"links": [{"index": 2, "connection": "Same\\nship."}]}', LINKS, {"links": [SHIP]}),
    ],
)  # fmt: skip
def test_what_is_read(form: Form, reply: str, fields: list[Field], values: dict[str, object] | None) -> None:
    if values is None:
        with pytest.raises(MalformedReplyError, match="expected one line RELEVANT: got 0"):
            read(reply, fields, form)
    else:
        assert read(reply, fields, form) == values


@pytest.mark.parametrize(
    ("form", "reply", "fields", "reason"),
    [
        ("json", '{"relevant": "yes", "indices": [1', LABELS, "the reply is not JSON"),
        ("json", '{"relevant": "yes"}', LABELS, "the reply lacks a part"),
        ("json", '{"relevant": "yes", "relevant": "no", "indices": []}', LABELS, "the reply is not JSON"),
        ("json", '{"relevant": "yes", "indices": [], "more": 1}', LABELS, "the reply lacks a part"),
        ("json", '{"relevant": "yes", "indices": [9]}', LABELS, "an index is out of range"),
        ("json", '{"relevant": "yes", "indices": [-1]}', LABELS, "an index is out of range"),
        ("json", '{"relevant": "yes", "indices": [1.0]}', LABELS, "an index is out of range"),
        ("json", '{"relevant": "yes", "indices": [true]}', LABELS, "an index is out of range"),
        ("json", '{"relevant": true, "indices": []}', LABELS, "neither yes nor no"),
        ("json", '{"relevant": "no", "indices": "none"}', LABELS, "the reply lacks a part"),
        ("json", '{"links": [3]}', LINKS, "the reply lacks a part"),
        ("json", '{"question": " ", "answer": "a", "indices": []}', QUESTION, "a part of the reply is empty"),
        ("json", "[" * 100_000, LABELS, "the reply is not JSON"),
        ("keywords", "RELEVANT: YES\nINDICES: one", LABELS, "an index is no number"),
        ("keywords", "RELEVANT: YES\nRELEVANT: NO\nINDICES: 1", LABELS, "the reply lacks a part"),
        ("keywords", "LINKS: same ship", LINKS, "an index is out of range"),
        ("keywords", "I'm sorry, I cannot do that.", LINKS, "the model refused"),
        ("json", "As an AI, I won't.", LINKS, "the model refused"),
        ("keywords", "Die Antwort ist ja.", LABELS, "the reply lacks a part"),
    ],
)
def test_what_is_refused(form: Form, reply: str, fields: list[Field], reason: str) -> None:
    with pytest.raises(MalformedReplyError) as caught:
        read(reply, fields, form)
    assert caught.value.reason == reason


@given(st.text(max_size=200), st.sampled_from(["json", "keywords"]))
def test_any_text_is_read_or_refused(reply: str, form: Form) -> None:
    for fields in (LABELS, LINKS, QUESTION):
        try:
            values = read(reply, fields, form)
        except MalformedReplyError:
            continue
        assert set(values) == {field.name for field in fields}


def test_the_schema_is_what_the_prompt_says() -> None:
    found = schema(LINKS, "links")
    assert found["required"] == ["links"]
    json.dumps(found)
    assert '"links": a list of objects' in stated(LINKS, "json")
    assert "LINKS and a number" in stated(LINKS, "keywords")


def test_the_scripted_model_knows_only_our_prompts() -> None:
    with pytest.raises(ValueError, match="got a prompt with"):
        scripted_reply("What is the time?")
