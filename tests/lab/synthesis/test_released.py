"""Released training files: there and back, and what is refused."""

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from spscanner_rag.lab.evidence.questions import DataError, read_documents
from spscanner_rag.lab.synthesis.released import converted, read_released, released_record

LINE = {
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


def test_there_and_back(byte_tokenizer: Tokenizer, tmp_path: Path) -> None:
    record = released_record(LINE, UNITS, byte_tokenizer)
    assert record["sentence_labels"] == [0, 1, 0]
    assert record["sentence_indices"] == [22 + 17, 22 + 36, 22 + 52]
    path = tmp_path / "released.jsonl"
    path.write_text(json.dumps(record) + "\n\n")
    assert list(read_released([path], byte_tokenizer)) == [LINE]
    (tmp_path / "ours.jsonl").write_text(json.dumps(LINE) + "\n")
    (document,) = read_documents([tmp_path / "ours.jsonl"])
    assert document.text[slice(*document.questions[0].evidence[0])] == "It came back late."


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sentence_labels": None}, "expected a list under 'sentence_labels'"),
        ({"sentence_labels": [0, 1]}, "got 3 sentences, 2 labels and 3 indices"),
        ({"full_text_sentences": ["Some", "other", "text"]}, "give the tokenizer that made the file"),
    ],
)
def test_what_is_refused(byte_tokenizer: Tokenizer, change: dict[str, object], message: str) -> None:
    record = released_record(LINE, UNITS, byte_tokenizer) | change
    with pytest.raises(DataError, match=message):
        converted(record, byte_tokenizer, "a", "s", "file, line 1")
    without = released_record(LINE, UNITS, byte_tokenizer)
    without["input_ids"] = without["input_ids"][23:]
    with pytest.raises(DataError, match="no token stands before the sentences"):
        converted(without, byte_tokenizer, "a", "s", "file, line 1")
