"""What a reply says: its text, and the tokens that it reports."""

from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from llama_index.core.llms import CompletionResponse

from spscanner_lab.llm.replies import Usage, reply_text, usage_of


@pytest.mark.parametrize("reply", [None, 3, b"bytes", ["text"]])
def test_a_reply_without_text(reply: object) -> None:
    with pytest.raises(
        TypeError, match=f"returned {type(reply).__name__}; expected text"
    ):
        reply_text(reply)


def completion(**options: object) -> CompletionResponse:
    return CompletionResponse(text="a", **options)


@pytest.mark.parametrize(
    ("reply", "usage"),
    [
        (
            AIMessage(
                "a",
                usage_metadata={
                    "input_tokens": 7,
                    "output_tokens": 3,
                    "total_tokens": 10,
                },
            ),
            (7, 3),
        ),
        (
            completion(raw={"usage": {"prompt_tokens": 5, "completion_tokens": 2}}),
            (5, 2),
        ),
        (
            completion(
                raw=SimpleNamespace(
                    usage=SimpleNamespace(input_tokens=4, output_tokens=1)
                )
            ),
            (4, 1),
        ),
        (
            completion(additional_kwargs={"prompt_tokens": 6, "completion_tokens": 2}),
            (6, 2),
        ),
        (completion(raw={"prompt_eval_count": 9, "eval_count": 8}), (9, 8)),
        ("a", None),
        (completion(), None),
    ],
)
def test_usage_of_either_framework(
    reply: object, usage: tuple[int, int] | None
) -> None:
    assert usage_of(reply) == usage


def test_usage_is_added_to_usage_alone() -> None:
    plain: Any = (5, 1)
    assert Usage(10, 2) + Usage(5, 1) == Usage(15, 3)
    with pytest.raises(TypeError):
        Usage(10, 2) + plain


def test_what_is_no_text_is_refused_or_empty() -> None:
    blocks = ["It ", {"type": "text", "text": "rained."}, {"type": "image"}, 5]
    assert reply_text(SimpleNamespace(content=blocks)) == "It rained."
    with pytest.raises(TypeError, match="returned int; expected text"):
        reply_text(5)
