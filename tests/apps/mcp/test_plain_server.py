"""Null is as not given, and what is wrong is said plainly."""

from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from tests.apps.mcp.conftest import KEEPER, Agent

ASKED = {"question": "Who left?", "path": "keeper.txt"}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("search_document", ASKED | {"text": None, "cursor": None}),
        ("search_document", ASKED | {"max_tokens": None}),
        ("search_document", ASKED | {"threshold": None, "always_keep": None}),
        ("search_document", ASKED | {"require_answer": None, "keep": None}),
        ("search_document", ASKED | {"unknown": None}),
        ("search_document", {"question": "Who?", "text": KEEPER, "path": None}),
        ("search_folder", {"question": "Who?", "folder": None, "max_tokens": None}),
        ("search_folder", {"question": "Who?", "cursor": None}),
        ("search_folder", {"question": "Who?", "read": None}),
    ],
)
async def test_null_is_as_not_given(
    tool: str, arguments: dict[str, Any], agent: Agent
) -> None:
    assert (await agent(tool, **arguments))["documents"]


async def test_null_for_neighbours_is_as_not_given(agent: Agent) -> None:
    found = await agent("search_document", **ASKED)
    one = found["documents"][0]["passages"][0]["id"]
    read = await agent("read_passage", id=one, neighbours=None, max_tokens=None)
    assert read == await agent("read_passage", id=one)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"max_tokens": 100}, "max_tokens: got 100; expected it to be greater than"),
        ({"max_tokens": 10**30}, "max_tokens: got 1000000000"),
        ({"max_tokens": "many"}, "max_tokens: got 'many'; expected it to be a valid"),
        ({"max_tokens": [500]}, "max_tokens: got [500]; expected it to be"),
        ({"max_tokens": 500.5}, "max_tokens: got 500.5; expected it to be"),
        ({"question": None}, "question: missing; expected a value for it"),
        ({"question": ""}, "question: got ''; expected it to have at least 1"),
        ({"question": 5}, "question: got 5; expected it to be a valid string"),
        ({"path": {"a": 1}}, "path: got {'a': 1}; expected it to be a valid string"),
        ({"cursor": "x" * 101}, "; expected it to have at most 100 characters"),
        ({"threshold": 2.0}, "threshold: got 2.0; expected it to be"),
        ({"always_keep": "x"}, "always_keep: got 'x'; expected"),
        ({"read": "half"}, 'read: got \'half\'; expected "auto", "all" or a share'),
        ({"read": 1.5}, 'read: got 1.5; expected "auto", "all" or a share from 0 to'),
        ({"read": [1]}, 'read: got list; expected "auto", "all" or a share from 0'),
        ({"read": True}, 'read: got bool; expected "auto", "all" or a share from 0'),
        ({"read": 0.5}, "which has no sentence scan to choose what is read"),
    ],
)
async def test_a_wrong_argument_is_said_on_one_plain_line(
    changed: dict[str, Any], message: str, agent: Agent
) -> None:
    refused = await agent.refused("search_document", **ASKED | changed)
    assert message in refused
    assert "\n" not in refused
    assert "pydantic" not in refused
    assert "validation error" not in refused
    assert len(refused) < 300
