"""A small question-answering corpus and a recipe.

The sentence with a question's key word is its answer.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer

from spscanner_lab.evidence.questions import Document, read_documents
from spscanner_lab.training.data.document_store import DocumentStore
from spscanner_lab.training.encoder_data import Source, read_sources
from spscanner_rag.checkpoint import ScannerSettings
from spscanner_rag.checkpoint.encoder_file import EncoderFile
from spscanner_rag.scan.reading import Reading
from spscanner_rag.text.segmentation import SentenceSegmenter
from tests.lab.training.letters import DOCUMENTS

ANIMALS = (
    "badger",
    "heron",
    "otter",
    "lynx",
    "marten",
    "stoat",
    "plover",
    "weasel",
    "beaver",
    "curlew",
)

RECIPE = """
steps = 4
sequence_tokens = [128]
sequences_per_step = 2
learning_rate = 1e-3
vocab_size = 300
validate_every = 2
validation_questions = 2
final_validation_questions = 4
save_every = 2
"""
SHAPE = {
    "d_model": 16,
    "n_layer": 1,
    "ssm_cfg": {"layer": "Mamba2", "d_state": 8, "headdim": 8},
}


def corpus_lines(
    source: str, documents: int, first: int = 0
) -> list[dict[str, object]]:
    lines: list[dict[str, object]] = []
    for number in range(first, first + documents):
        sentences = [
            f"On day {number} of the walk a {animal} crossed the road slowly."
            for animal in ANIMALS
        ]
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
        lines.append(
            {
                "doc_id": f"{source}-{number}",
                "source": source,
                "text": text,
                "questions": questions,
            }
        )
    return lines


@pytest.fixture(scope="session")
def corpus_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "train.jsonl"
    lines = corpus_lines("walks", 6) + corpus_lines("roads", 12)
    path.write_text(
        "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
    )
    return path


@pytest.fixture(scope="session")
def validation_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("validation") / "dev.jsonl"
    # other days than those in the training data
    lines = [
        line | {"text": f"Later. {line['text']}"}
        for line in corpus_lines("walks", 2, first=100)
    ]
    for line in lines:
        for question in line["questions"]:  # type: ignore[attr-defined]
            question["evidence"] = [
                [start + 7, end + 7] for start, end in question["evidence"]
            ]
    path.write_text(
        "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
    )
    return path


@pytest.fixture
def reading(tiny_tokenizer: Tokenizer) -> Reading:
    settings = ScannerSettings(
        reanchor_tokens=64, match=True, prior=True, surroundings=True
    )
    return Reading(tiny_tokenizer, SentenceSegmenter(), settings)


@pytest.fixture(scope="session")
def documents(corpus_file: Path) -> list[Document]:
    return list(read_documents([corpus_file]))


@pytest.fixture(scope="session")
def store(documents: list[Document]) -> DocumentStore:
    return DocumentStore(documents)


@pytest.fixture(scope="session")
def distinct(documents: list[Document]) -> list[Document]:
    """The corpus with questions that name the document they mean, and with answers."""
    return [
        replace(
            document,
            questions=tuple(
                replace(
                    question,
                    text=(
                        f"{question.text.rstrip('?')} on day"
                        f" {document.doc_id.split('-')[1]}?"
                    ),
                    answers=(f"day {document.doc_id.split('-')[1]}",),
                )
                for question in document.questions
            ),
        )
        for document in documents
    ]


@pytest.fixture(scope="session")
def letters(encoder_file: EncoderFile) -> dict[str, Source]:
    """The documents about letters, tokenized."""
    encoder = encoder_file.loaded("", "cpu", torch.float32)
    sources, _ = read_sources(DOCUMENTS, encoder, 40)
    return sources
