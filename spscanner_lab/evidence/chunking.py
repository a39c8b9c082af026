"""Folders of Chroma's chunking evaluation.

See github.com/brandonstarxel/chunking_evaluation. Its questions, with exact spans in a
few texts, are asked of all texts together (Smith and Troynikov, 2024).
"""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spscanner_lab.evidence.data_lines import DataError, expecting, require
from spscanner_lab.evidence.questions import Document, Question
from spscanner_rag.system.strict_json import parse_json

QUESTIONS = "questions_df.csv"
TEXTS = "corpora"


def is_chunking(folder: Path) -> bool:
    """Whether a path is a folder of Chroma's chunking evaluation."""
    return (folder / QUESTIONS).is_file() and (folder / TEXTS).is_dir()


def read_chunking(folder: Path) -> list[Document]:
    """Read the questions and the texts of a folder.

    ``questions_df.csv`` has question, references and corpus_id; the texts are
    ``corpora/ID.md`` or ``.txt``. `DataError` for a row that names no text, or whose
    quotation is not at the place it gives.
    """
    texts = _texts_in(folder / TEXTS)
    questions: dict[str, list[Question]] = {name: [] for name in texts}
    path = folder / QUESTIONS
    with path.open(encoding="utf-8", newline="") as file:
        try:
            for number, row in enumerate(csv.DictReader(file), 1):
                location = f"{path}, row {number}"
                name = row.get("corpus_id") or ""
                has_both = name in texts and (row.get("question") or "").strip()
                names = ", ".join(texts) or "the texts, of which there are none"
                expected = f"a question, and a corpus_id of {names}"
                require(has_both, expected, name, location)
                evidence = _evidence(row, texts[name], location)
                question = Question(f"row-{number}", row["question"], evidence)
                questions[name].append(question)
        except csv.Error as error:
            raise DataError(f"{path}: expected CSV, got {error}") from None
    return [
        Document(name, folder.name, "", text, tuple(questions[name]))
        for name, text in texts.items()
    ]


def _texts_in(folder: Path) -> dict[str, str]:
    """Return the texts of a folder by name, in the order of their names."""
    path_by_name = {}
    for path in folder.iterdir():
        if path.suffix in (".md", ".txt"):
            path_by_name[path.stem] = path
    texts = {}
    for name, path in sorted(path_by_name.items()):
        texts[name] = path.read_text(encoding="utf-8")
    return texts


def _evidence(
    row: Mapping[str, str], text: str, location: str
) -> tuple[tuple[int, int], ...]:
    """Return the spans of a row's references, each of which quotes the text."""
    with expecting(
        "references, a JSON list of content, start_index, end_index", location
    ):
        references: Any = parse_json(row.get("references") or "")
        quotations = []
        for reference in references:
            start = int(reference["start_index"])
            end = int(reference["end_index"])
            quotations.append((start, end, reference["content"]))
    for start, end, content in quotations:
        is_there = 0 <= start < end and text[start:end] == content
        expected = (
            f"{content!r:.60} at characters {start} to {end} (are questions and texts"
            " of one version?)"
        )
        require(is_there, expected, text[max(start, 0) : end], location)
    require(quotations, "at least one reference", quotations, location)
    return tuple((start, end) for start, end, _ in quotations)
