"""Converts the files that the paper's authors released to question files.

Each record of a training file has ``input_ids`` (the tokens of the question, a line
break and the document), ``full_text_sentences`` (strings that, joined, are the
document), ``sentence_indices`` (the place of the last token of each sentence in
``input_ids``) and ``sentence_labels`` (1 for a relevant sentence). A test file is one
JSON object of benchmarks or categories. Its records have no labels, but ``question``,
``answer`` (a list of right answers) and ``answer_type`` ("sentence" or "paragraph").
The licence of the data forbids redistribution.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import Tokenizer

from spscanner_lab.evidence.data_lines import (
    DataError,
    expecting,
    json_objects,
    require,
)
from spscanner_rag.system.strict_json import parse_json

MOST_NAMES = 3  # category, benchmark and record

KEYS = ("input_ids", "full_text_sentences", "sentence_indices", "sentence_labels")

Span = tuple[int, int]


class _Labels(NamedTuple):
    """A record of a training file: its text, question and relevant spans."""

    text: str
    question: str
    evidence: list[Span]


def read_released(
    paths: Sequence[Path], tokenizer: Tokenizer
) -> Iterator[dict[str, Any]]:
    """Yield the records of released files as lines of a question file.

    ``tokenizer`` is the one that made ``input_ids``: that of EleutherAI/gpt-neox-20b.
    `DataError` for a record whose labels, indices or tokens do not match its sentences.
    """
    count = 0
    for path in paths:
        for number, record in json_objects(path, "a JSON object"):
            labels = _read(record, tokenizer, f"{path}, line {number}")
            name = f"released-{count}"
            question = {
                "qid": f"{name}-0",
                "question": labels.question,
                "evidence": labels.evidence,
                "answerable": bool(labels.evidence),
            }
            yield _line(name, "released", "train", labels.text, question)
            count += 1


def read_released_tests(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a released test file as lines of a question file.

    They have answers and no evidence. A line's source is the outermost name, a
    benchmark's or a category's, and its ``doc_id`` is made of all names on the path to
    the record. `DataError` if the file is not a test file.
    """
    with expecting("one JSON object of benchmarks or categories", str(path)):
        content = parse_json(path.read_text(encoding="utf-8"))
    for names, record in _records((), content, path):
        doc_id = "/".join(names)
        answers = record["answer"]
        if not isinstance(answers, list):
            answers = [answers]
        question = {
            "qid": doc_id,
            "question": record["question"],
            "answers": list(map(str, answers)),
        }
        if record.get("answer_type"):
            question["answer_form"] = record["answer_type"]
        text = "".join(record["full_text_sentences"])
        yield _line(doc_id, names[0], "test", text, question)


def _line(
    doc_id: str, source: str, split: str, text: str, question: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "doc_id": doc_id,
        "source": source,
        "split": split,
        "title": "",
        "text": text,
        "questions": [question],
    }


def _records(
    names: tuple[str, ...], content: object, path: Path
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Yield the records in an object or a list, with the names on the path to each."""
    if isinstance(content, dict) and "full_text_sentences" in content and names:
        _check_record(content, f"{path}, record {'/'.join(names)!r:.80}")
        yield names, content
    elif isinstance(content, (dict, list)) and len(names) < MOST_NAMES:
        parts = content.items() if isinstance(content, dict) else enumerate(content)
        for name, part in parts:
            yield from _records((*names, str(name)), part, path)
    else:
        location = "/".join(names) or "the file"
        raise DataError(
            f"{path}: got {type(content).__name__} at {location!r:.80}; expected"
            " objects of benchmarks or categories, and in them records with"
            " full_text_sentences"
        )


def _check_record(record: Mapping[str, Any], location: str) -> None:
    is_question = isinstance(record.get("question"), str) and "answer" in record
    is_complete = is_question and _are_strings(record["full_text_sentences"])
    expected = "a question, an answer and a list of strings under full_text_sentences"
    require(is_complete, expected, ", ".join(record), location)


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
