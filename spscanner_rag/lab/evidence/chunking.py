"""The folder of Chroma's chunking evaluation: questions with exact spans in a few texts, asked of all together.

Smith and Troynikov, "Evaluating Chunking Strategies for Retrieval" (2024), repository
brandonstarxel/chunking_evaluation.
"""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spscanner_rag.files.writing import parse_json
from spscanner_rag.lab.evidence.questions import DataError, Document, Question, expecting, require

QUESTIONS, TEXTS = "questions_df.csv", "corpora"


def is_chunking(folder: Path) -> bool:
    """Whether a path is a folder in this layout."""
    return (folder / QUESTIONS).is_file() and (folder / TEXTS).is_dir()


def read_chunking(folder: Path) -> list[Document]:
    """Read ``questions_df.csv`` (question, references, corpus_id) and ``corpora/ID.md`` or ``.txt``.

    `DataError` for a row that names no text, or quotes something that is not where it says.
    """
    paths = {path.stem: path for path in (folder / TEXTS).iterdir() if path.suffix in (".md", ".txt")}
    texts = {name: path.read_text(encoding="utf-8") for name, path in sorted(paths.items())}
    asked: dict[str, list[Question]] = {name: [] for name in texts}
    with (folder / QUESTIONS).open(encoding="utf-8", newline="") as file:
        try:
            for number, row in enumerate(csv.DictReader(file), 1):
                where = f"{folder / QUESTIONS}, row {number}"
                name = row.get("corpus_id") or ""
                known = name in texts and (row.get("question") or "").strip()
                names = ", ".join(texts) or "the texts, of which there are none"
                require(known, f"a question, and a corpus_id of {names}", name, where)
                spans = _spans(row, texts[name], where)
                asked[name].append(Question(f"row-{number}", row["question"], spans))
        except csv.Error as error:
            raise DataError(f"{folder / QUESTIONS}: expected CSV, got {error}") from None
    return [Document(name, folder.name, "", text, tuple(asked[name])) for name, text in texts.items()]


def _spans(row: Mapping[str, str], text: str, where: str) -> tuple[tuple[int, int], ...]:
    with expecting("references, a JSON list of content, start_index, end_index", where):
        references: Any = parse_json(row.get("references") or "")
        quoted = [(int(each["start_index"]), int(each["end_index"]), each["content"]) for each in references]
    for start, end, content in quoted:
        is_there = 0 <= start < end and text[start:end] == content
        expected = f"{content!r:.60} at characters {start} to {end} (are questions and texts of one version?)"
        require(is_there, expected, text[max(start, 0) : end], where)
    require(quoted, "at least one reference", quoted, where)
    return tuple((start, end) for start, end, _ in quoted)
