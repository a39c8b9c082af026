"""A small question-answering corpus: every question's answer is the sentence that holds its key word."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from spscanner_rag.evaluation.data import Document, read_documents
from spscanner_rag.training.teacher import Embedder

ANIMALS = ("badger", "heron", "otter", "lynx", "marten", "stoat", "plover", "weasel", "beaver", "curlew")


def corpus_lines(source: str, documents: int) -> list[dict[str, object]]:
    lines: list[dict[str, object]] = []
    for number in range(documents):
        sentences = [f"On day {number} of the walk a {animal} crossed the road slowly." for animal in ANIMALS]
        text = " ".join(sentences)
        questions = []
        for animal, sentence in zip(ANIMALS[:4], sentences, strict=False):
            start = text.index(sentence)
            questions.append(
                {
                    "qid": f"{source}-{number}-{animal}",
                    "question": f"Where was the {animal}?",
                    "evidence": [[start, start + len(sentence)]],
                }
            )
        lines.append({"doc_id": f"{source}-{number}", "source": source, "text": text, "questions": questions})
    return lines


@pytest.fixture(scope="session")
def corpus_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "train.jsonl"
    lines = corpus_lines("walks", 6) + corpus_lines("roads", 12)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def validation_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("validation") / "dev.jsonl"
    lines = [line | {"text": f"Later. {line['text']}"} for line in corpus_lines("walks", 2)]
    for line in lines:
        for question in line["questions"]:  # type: ignore[attr-defined]
            question["evidence"] = [[start + 7, end + 7] for start, end in question["evidence"]]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def documents(corpus_file: Path) -> list[Document]:
    return list(read_documents([corpus_file]))


@pytest.fixture
def ones() -> Embedder:
    """A teacher for which every sentence is as close to every question as can be: cosine 2."""

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.ones((len(texts), 2), np.float32)

    return embed
