"""Questions on excerpts of long documents: the same for everyone who has the documents."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spscanner_rag.lab.evidence.questions import Document, Question


def write_excerpts(documents: Iterable[Document], questions: int, characters: int, path: Path) -> None:
    """Write one document a question, in the format of ``spscanner eval``.

    Parameters
    ----------
    documents : iterable of Document
    questions : int
        Number from each source, by the rule of ``--max-questions`` with seed 0.
    characters : int
        Length of an excerpt, if the document is that long. It holds the question's first evidence, or the
        beginning of that, at a place that the question's id decides.
    path : Path
    """
    from spscanner_rag.checkpoint.whole_file import write_whole
    from spscanner_rag.lab.evidence.sampling import sample_questions

    sample = sample_questions(documents, questions)
    lines = [json.dumps(_excerpt(*asked, characters)) + "\n" for pairs in sample.values() for asked in pairs]
    write_whole(path, "".join(lines))


def _excerpt(document: Document, question: Question, characters: int) -> dict[str, object]:
    text, (first, last) = document.text, min(question.evidence)
    spare = max(0, characters - (last - first))
    before = random.Random(f"{document.doc_id} {question.qid}").randint(0, spare)
    start = _sentence_start(text, max(0, min(first - before, len(text) - characters)), first)
    stop = min(len(text), start + characters)
    return {
        "doc_id": document.doc_id,  # so that statistics know which excerpts are of one document
        "source": document.source,
        "text": text[start:stop],
        "questions": [
            {
                "qid": question.qid,
                "question": question.text,
                "evidence": list(_inside(question.evidence, start, stop)),
            }
        ],
    }


def _sentence_start(text: str, place: int, evidence: int) -> int:
    """The first start of a sentence or line from a place on, no later than the evidence; else the place."""
    if place == 0:
        return 0
    ends = [end for mark in (". ", "\n") if (end := text.find(mark, place, evidence)) >= 0]
    return min(ends) + 1 if ends else place


def _inside(evidence: Iterable[tuple[int, int]], start: int, stop: int) -> Iterator[list[int]]:
    for first, last in evidence:
        cut = max(first, start), min(last, stop)
        if cut[0] < cut[1]:
            yield [cut[0] - start, cut[1] - start]
