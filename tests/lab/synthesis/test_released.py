"""Released training files: there and back, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from spscanner_rag.lab.evidence.questions import DataError, read_documents
from spscanner_rag.lab.synthesis.released import read_released

LINE: dict[str, Any] = {
    "doc_id": "released-0",
    "source": "released",
    "split": "train",
    "title": "",
    "text": "The ship sailed. It came back late. Nobody knew why.",
    "questions": [
        {
            "qid": "released-0-0",
            "question": "When did it come back?",
            "evidence": [[17, 35]],
            "answerable": True,
        }
    ],
}
UNITS = [(0, 17), (17, 36), (36, 52)]


@pytest.fixture
def byte_tokenizer() -> Tokenizer:
    """Byte-level, as that of GPT-NeoX: decoding gives back what was encoded."""
    from tokenizers import decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: number for number, letter in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def record_of(tokenizer: Tokenizer) -> dict[str, Any]:
    """The record of `LINE`; each character of the question, a line break and the text is a token."""
    question, text = LINE["questions"][0]["question"], LINE["text"]
    return {
        "input_ids": tokenizer.encode(f"{question}\n{text}").ids,
        "full_text_sentences": [text[start:end] for start, end in UNITS],
        "sentence_indices": [len(question) + end for _, end in UNITS],
        "sentence_labels": [0, 1, 0],
    }


def test_a_record_becomes_a_line(byte_tokenizer: Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "released.jsonl"
    path.write_text(json.dumps(record_of(byte_tokenizer)) + "\n\n")
    found = json.loads(json.dumps(list(read_released([path], byte_tokenizer))))
    assert found == [LINE]
    (tmp_path / "ours.jsonl").write_text(json.dumps(LINE) + "\n")
    (document,) = read_documents([tmp_path / "ours.jsonl"])
    assert document.text[slice(*document.questions[0].evidence[0])] == "It came back late."


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sentence_labels": None}, "line 1: expected a list under 'sentence_labels'"),
        ({"sentence_labels": [0, 1]}, "got 3 sentences, 2 labels and 3 indices"),
        ({"full_text_sentences": ["Some", "other", "text"]}, "give the tokenizer that made the file"),
        ({"input_ids": "the text alone"}, "no token stands before the sentences"),
    ],
)
def test_records_that_are_refused(
    byte_tokenizer: Tokenizer, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    record = record_of(byte_tokenizer) | change
    if record["input_ids"] == "the text alone":
        record["input_ids"] = byte_tokenizer.encode(LINE["text"]).ids
    path = tmp_path / "released.jsonl"
    path.write_text(json.dumps(record) + "\n")
    with pytest.raises(DataError, match=message):
        list(read_released([path], byte_tokenizer))
