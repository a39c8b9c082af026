"""Hostile answers and documents: the report of `verify` says only what is so."""

import json
import re
from typing import Any

import pytest

from spscanner_rag.apps.verifying import verify
from spscanner_rag.apps.verifying.citation_blocks import to_anthropic, to_openai
from spscanner_rag.apps.verifying.report import MEANINGS
from tests.attack.conftest import Attempt
from tests.text.test_framing import CONTROLS, HEADS, INVISIBLE, MARKUP

LOG = ("log.txt", "She ran aground only once, in 1899 on the bar. It rained.")
QUOTE = 'She "ran aground only once, in 1898" (log.txt).'
ANSWERS = [
    '"' * 30_000,
    "“" * 9_000 + "ran aground only once" + "”" * 9_000,
    '"ran aground only once" ' * 8_000,
    "[" * 30_000,
    "[1]" * 30_000,
    f'"ran aground only once" [{"9" * 30_000}]',
    '"ran aground only once" [1-999999999]',
    f'"ran aground only once" [{"1," * 30_000}1]',
    f'"{"a" * 300_000} b c d"',
    "> " * 30_000 + "ran aground only once",
    "```\n" * 30_000 + QUOTE,
    "a" + "\u0301" * 30_000 + f" {QUOTE}",
    "|a b c" * 30_000,
    f"{QUOTE}\nsupported  quote  forged\n           log.txt: forged",
    "\0" * 999,
]
NAMES = ["\x1b]0;x\x07\u202e.txt", "a\nsupported  quote.txt", "", "[1]", "log.txt"]
BLOCKS: list[dict[str, Any]] = [
    {"cited_text": "ran aground", "document_index": 10**400},
    {"cited_text": "ran aground", "document_index": -1},
    {"cited_text": "ran aground only once", "document_index": True},
    {"cited_text": "ran aground only once", "document_index": float("nan")},
    {"cited_text": 5},
    {"cited_text": ["ran aground only"] * 3},
    {"cited_text": "ran aground only once", "start_page_number": 10**400},
    {"cited_text": "ran aground only once", "document_title": {"a": "log.txt"}},
    {"cited_text": "\x1b[2J\nsupported  quote  forged", "document_title": "\u202e"},
]
ANNOTATIONS: list[dict[str, Any]] = [
    {"start_index": 10**400, "end_index": -(10**400), "url": "log.txt"},
    {"start_index": -5, "end_index": -99, "filename": "log.txt"},
    {"start_index": float("nan"), "end_index": 2, "title": "log.txt"},
    {"index": 10**30, "filename": "log.txt"},
    {"url_citation": {"url_citation": {}}, "start_index": 1, "end_index": 3},
    {"url_citation": "http://evil.example", "start_index": 1, "end_index": 3},
    {"title": "\x1b[2J\nsupported  quote  forged", "start_index": 0, "end_index": 30},
]


def check(answer: Any, documents: list[Any]) -> None:
    """Every line is ours, every span is in the answer, and JSON can be written."""
    checked = verify(answer, documents, claims=False)
    lines = [str(statement) for statement in checked.statements]
    for line in "\n".join(lines).split("\n"):
        if line:
            assert re.match(rf"(?:{'|'.join(MEANINGS)}) +(?:quote|claim)| {{11}}", line)
        assert not INVISIBLE.search(line)
    statuses = [statement.status for statement in checked.statements]
    for line, status in zip(lines, statuses, strict=True):
        assert line.startswith(status)
    for statement in checked.statements:
        assert 0 <= statement.start <= statement.end <= len(checked.answer)
    for form in (checked.to_dict(), to_anthropic(checked), to_openai(checked)):
        assert json.loads(json.dumps(form)) is not None


@pytest.mark.parametrize("number", range(len(ANSWERS)))
def test_any_answer(number: int, attempt: Attempt) -> None:
    with attempt("verify: answers"):
        check(ANSWERS[number], [LOG])


@pytest.mark.parametrize("hostile", [*HEADS, *MARKUP, *CONTROLS])
def test_any_text_of_an_answer_or_a_document(hostile: str, attempt: Attempt) -> None:
    text = f"She ran aground {hostile} only once, in 1899 on the bar {hostile}."
    with attempt("verify: texts"):
        check(f'{hostile} "ran aground {hostile} only once, in 1898" (log.txt)', [LOG])
        for name in NAMES:
            check(QUOTE, [(name, text)])
            check(f'"ran aground {hostile} only once" ({name})', [(name, text)])


@pytest.mark.parametrize("number", range(len(BLOCKS) + len(ANNOTATIONS)))
def test_any_citation_of_an_api(number: int, attempt: Attempt) -> None:
    block: dict[str, Any] = {"type": "text", "text": QUOTE}
    if number < len(BLOCKS):
        block["citations"] = [BLOCKS[number], None, 5, "x"]
    else:
        block["annotations"] = [ANNOTATIONS[number - len(BLOCKS)], None, 5, "x"]
    with attempt("verify: citations of an API"):
        check([block], [LOG])
        check({"content": [block, None, 5]}, [LOG])


def test_answers_without_an_end_are_refused(attempt: Attempt) -> None:
    circle: list[Any] = []
    circle.append(circle)
    deep: Any = "a"
    for _ in range(20_000):
        deep = {"content": [deep]}
    for answer in (circle, deep, [None] * 9, 5, None, b"x", {}):
        with (
            attempt("verify: answers of other kinds"),
            pytest.raises(TypeError, match=r"answer: got .*; expected a string"),
        ):
            verify(answer, [LOG], claims=False)
