"""Converts the training files that the paper's authors released to question files.

Each record has ``input_ids`` (the tokens of the question, a line break and the
document), ``full_text_sentences`` (strings that, joined, are the document),
``sentence_indices`` (the place of the last token of each sentence in ``input_ids``) and
``sentence_labels`` (1 for a relevant sentence). The licence of the data forbids
redistribution.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import Tokenizer

from spscanner_lab.evidence.data_lines import (
    DataError,
    expecting,
    numbered_lines,
    require,
)
from spscanner_rag.system.strict_json import parse_object

KEYS = ("input_ids", "full_text_sentences", "sentence_indices", "sentence_labels")

Span = tuple[int, int]


class _Labels(NamedTuple):
    """A record of a training file: its text, question and relevant spans."""

    text: str
    question: str
    evidence: list[Span]


def read_released(
    paths: Sequence[Path],
    tokenizer: Tokenizer,
    on_bad: Callable[[DataError], object] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the records of released files as lines of a question file.

    ``tokenizer`` is the one that made ``input_ids``: that of EleutherAI/gpt-neox-20b.
    A record is bad if its labels, indices or tokens do not match its sentences, or if
    it is cut. ``on_bad`` gets the error of each, and the record is left out; without
    it, `DataError` is raised.
    """
    count = 0
    for path in paths:
        for number, line in numbered_lines(path):
            if not line.strip():
                continue
            location = f"{path}, line {number}"
            try:
                with expecting("a JSON object", location):
                    record = parse_object(line)
                labels = _read(record, tokenizer, location)
            except DataError as error:
                if on_bad is None:
                    raise
                on_bad(error)
                continue
            yield _line(f"released-{count}", labels)
            count += 1


def _line(name: str, labels: _Labels) -> dict[str, Any]:
    question = {
        "qid": f"{name}-0",
        "question": labels.question,
        "evidence": labels.evidence,
        "answerable": bool(labels.evidence),
    }
    return {
        "doc_id": name,
        "source": "released",
        "split": "train",
        "title": "",
        "text": labels.text,
        "questions": [question],
    }


def _are_strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _read(record: Mapping[str, Any], tokenizer: Tokenizer, location: str) -> _Labels:
    """Return a record's text, its question and the relevant spans.

    The question precedes the sentences in the tokens.
    """
    _check_columns(record, location)
    sentences = record["full_text_sentences"]
    text = "".join(sentences)
    decoded = tokenizer.decode(record["input_ids"], skip_special_tokens=False)
    expected = (
        f"tokens that end with {text[-40:]!r} (give the tokenizer that made the file)"
    )
    require(decoded.endswith(text), expected, decoded[-40:], location)
    question = decoded[: len(decoded) - len(text)].strip()
    require(question, "a question before the sentences", decoded, location)
    evidence = _relevant_spans(sentences, record["sentence_labels"])
    return _Labels(text, question, evidence)


def _check_columns(record: Mapping[str, Any], location: str) -> None:
    missing = [key for key in KEYS if not isinstance(record.get(key), list)]
    if missing:
        raise DataError(
            f"{location}: expected a list under {missing[0]!r} and the keys"
            f" {', '.join(KEYS)}"
        )
    token_ids, sentences, indices, labels = (record[key] for key in KEYS)
    counts = [len(sentences), len(labels), len(indices)]
    is_same = len(set(counts)) == 1
    require(is_same, "as many sentences as labels and indices", counts, location)
    are_tokens = all(type(token) is int and 0 <= token < 2**32 for token in token_ids)
    are_fit = are_tokens and _are_strings(sentences)
    require(are_fit, "token ids and strings", record, location)


def _relevant_spans(sentences: Iterable[str], labels: Iterable[object]) -> list[Span]:
    """Return the spans of relevant sentences without the white space around them."""
    spans = []
    start = 0
    for sentence, label in zip(sentences, labels, strict=True):
        end = start + len(sentence)
        if label and sentence.strip():
            first = end - len(sentence.lstrip())
            last = start + len(sentence.rstrip())
            spans.append((first, last))
        start = end
    return spans
