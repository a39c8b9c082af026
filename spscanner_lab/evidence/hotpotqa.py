"""The files of HotpotQA: two-hop questions, each with the articles that it is asked of.

See hotpotqa.github.io (Yang et al., 2018), CC BY-SA 4.0. In the distractor setting,
two of the ten articles have the supporting facts, sentences that are the evidence.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from spscanner_lab.evidence.data_lines import DataError, expecting
from spscanner_lab.evidence.questions import Document, Question

SOURCE = "hotpotqa"
_RECORD = "a list of records, each with _id, question, context and supporting_facts"


def is_hotpotqa(path: Path) -> bool:
    """Whether a file is a list, as only these are."""
    with path.open("rb") as file:
        return file.read(100).lstrip().startswith(b"[")


def read_hotpotqa(path: Path) -> Iterator[Document]:
    """Yield a document of the articles of each question.

    An article's title stands above its sentences. A supporting fact that the articles
    lack is left out, as the official score does.

    Raises
    ------
    DataError
        For a file that is no list of such records, or a record that is damaged.
    """
    with expecting(_RECORD, str(path)):
        records = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(records, list):
        raise DataError(f"{path}: expected {_RECORD}, got {type(records).__name__}")
    for number, record in enumerate(records, 1):
        with expecting(_RECORD, f"{path}, record {number}"):
            document = _document(record)
        yield document


def _document(record: Mapping[str, Any]) -> Document:
    text = ""
    span_of: dict[tuple[str, int], tuple[int, int]] = {}
    for title, sentences in record["context"]:
        text += f"\n\n{title}\n" if text else f"{title}\n"
        for number, sentence in enumerate(sentences):
            start = len(text) + len(sentence) - len(sentence.lstrip())
            text += sentence
            span_of[title, number] = (start, len(text.rstrip()))
    evidence: list[tuple[int, int]] = []
    for title, number in record["supporting_facts"]:
        start, end = span_of.get((title, number), (0, 0))
        if start < end:
            evidence.append((start, end))
    question = Question(
        record["_id"],
        record["question"],
        tuple(sorted(evidence)),
        answers=(record["answer"],) if "answer" in record else (),
    )
    return Document(record["_id"], SOURCE, "", text, (question,))
