"""Citation blocks of Anthropic's and OpenAI's APIs, in and out."""

from types import SimpleNamespace
from typing import Any

import pytest

from spscanner_rag import verify
from spscanner_rag.apps.verifying.citation_blocks import (
    read_answer,
    to_anthropic,
    to_openai,
)

LOG = ("log.txt", "She ran aground only once, in 1899 on the bar. It rained.")
CREW = ("crew.txt", "The mate left in May.")


def anthropic(cited_text: str, document: int) -> dict[str, Any]:
    citation = {
        "type": "char_location",
        "cited_text": cited_text,
        "document_index": document,
        "document_title": "log",
        "start_char_index": 0,
        "end_char_index": 25,
    }
    blocks = [
        {"type": "text", "text": "Once: "},
        {"type": "text", "text": "she went aground.", "citations": [citation]},
    ]
    return {"role": "assistant", "content": blocks}


@pytest.mark.parametrize(
    ("cited_text", "document", "status"),
    [
        ("She ran aground only once", 0, "supported"),
        ("She ran aground only once", 1, "elsewhere"),
        ("She ran aground only once", 9, "elsewhere"),
        ("She ran aground only twice, in 1899", 0, "altered"),
    ],
)
def test_cited_texts_of_anthropic(cited_text: str, document: int, status: str) -> None:
    answer = anthropic(cited_text, document)
    found = verify(answer, [LOG, CREW], claims=False)
    assert found.answer == "Once: she went aground."
    assert [statement.status for statement in found.statements] == [status]


def test_objects_are_read_as_dictionaries_are() -> None:
    message = anthropic("x", 0)
    blocks = [SimpleNamespace(**block) for block in message["content"]]
    blocks[1].citations = [SimpleNamespace(**blocks[1].citations[0])]
    assert read_answer(SimpleNamespace(content=blocks)) == read_answer(message)


def test_annotations_of_openai() -> None:
    annotation = {"type": "file_citation", "index": 9, "filename": "crew.txt"}
    text = {"type": "output_text", "text": "He left.", "annotations": [annotation]}
    response = {
        "output": [{"type": "reasoning"}, {"type": "message", "content": [text]}]
    }
    answer = read_answer(response)
    assert answer.text == "He left."
    assert [(quote.title, quote.start) for quote in answer.quotes] == [("crew.txt", 9)]
    message = {"content": "He left.", "annotations": [annotation]}
    assert read_answer(message) == answer


def test_supported_statements_become_blocks() -> None:
    answer = 'They say "ran aground only once". And "he was the owner of it all" too.'
    found = verify(answer, [LOG], claims=False)
    blocks = to_anthropic(found)
    assert "".join(block["text"] for block in blocks) == answer
    (cited,) = [block for block in blocks if "citations" in block]
    (citation,) = cited["citations"]
    span = slice(citation["start_char_index"], citation["end_char_index"])
    assert LOG[1][span] == citation["cited_text"] == cited["text"]
    again = verify({"content": blocks}, [LOG], claims=False)
    assert "supported" in {statement.status for statement in again.statements}
    (annotation,) = to_openai(found)["annotations"]
    assert annotation["filename"] == "log.txt"
    assert answer[: annotation["index"]].endswith("only once")
