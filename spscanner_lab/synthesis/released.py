"""Converts the files that the paper's authors released to question files of this package.

Each record of a training file has ``input_ids`` (the tokens of the question, a line
break and the document), ``full_text_sentences`` (strings that, joined, are the
document), ``sentence_indices`` (the place of the last token of each sentence in
``input_ids``) and ``sentence_labels`` (1 for a relevant sentence). A test file is one
JSON object of benchmarks or categories. Its records have no labels, but ``question``,
``answer`` (a list of right answers) and ``answer_type`` ("sentence" or "paragraph").
The licence of the data forbids redistribution.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

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


def read_released(
    paths: Sequence[Path], tokenizer: Tokenizer
) -> Iterator[dict[str, Any]]:
    """Yield the records of released files as lines of a question file.

    ``tokenizer`` is the one that made ``input_ids``: that of EleutherAI/gpt-neox-20b.
    `DataError` for a record whose labels, indices or tokens do not match its sentences.
    """
    records = (
        (path, *own) for path in paths for own in json_objects(path, "a JSON object")
    )
    for count, (path, number, record) in enumerate(records):
        text, question, evidence = _read(record, tokenizer, f"{path}, line {number}")
        name = f"released-{count}"
        asked = {
            "qid": f"{name}-0",
            "question": question,
            "evidence": evidence,
            "answerable": bool(evidence),
        }
        yield _line(name, "released", "train", text, asked)


def read_released_tests(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a released test file as lines of a question file, with answers and without evidence.

    A line's source is the outermost name, a benchmark's or a category's, and its
    ``doc_id`` is made of all names on the path to the record. `DataError` if the file
    is not a test file.
    """
    with expecting("one JSON object of benchmarks or categories", str(path)):
        content = parse_json(path.read_text(encoding="utf-8"))
    for names, record in _records((), content, path):
        doc_id = "/".join(names)
        answers = (
            record["answer"]
            if isinstance(record["answer"], list)
            else [record["answer"]]
        )
        asked = {
            "qid": doc_id,
            "question": record["question"],
            "answers": [str(each) for each in answers],
        }
        if record.get("answer_type"):
            asked["answer_form"] = record["answer_type"]
        yield _line(
            doc_id, names[0], "test", "".join(record["full_text_sentences"]), asked
        )


def _line(
    doc_id: str, source: str, split: str, text: str, asked: Mapping[str, Any]
) -> dict[str, Any]:
    own = {
        "doc_id": doc_id,
        "source": source,
        "split": split,
        "title": "",
        "text": text,
    }
    return own | {"questions": [asked]}


def _records(
    names: tuple[str, ...], content: object, path: Path
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """The records in an object or a list, each with the names on the path to it."""
    if isinstance(content, dict) and "full_text_sentences" in content and names:
        sentences, question = content["full_text_sentences"], content.get("question")
        whole = (
            isinstance(question, str)
            and "answer" in content
            and _are_strings(sentences)
        )
        expected = (
            "a question, an answer and a list of strings under full_text_sentences"
        )
        require(
            whole,
            expected,
            ", ".join(content),
            f"{path}, record {'/'.join(names)!r:.80}",
        )
        yield names, content
    elif isinstance(content, (dict, list)) and len(names) < MOST_NAMES:
        parts = content.items() if isinstance(content, dict) else enumerate(content)
        for name, part in parts:
            yield from _records((*names, str(name)), part, path)
    else:
        where = "/".join(names) or "the file"
        raise DataError(
            f"{path}: got {type(content).__name__} at {where!r:.80}; expected objects"
            " of benchmarks or categories, and in them records with"
            " full_text_sentences"
        )


def _are_strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _read(
    record: Mapping[str, Any], tokenizer: Tokenizer, where: str
) -> tuple[str, str, list[tuple[int, int]]]:
    """Return a record's text, its question, which precedes the sentences in the tokens, and the relevant spans."""
    missing = [key for key in KEYS if not isinstance(record.get(key), list)]
    if missing:
        raise DataError(
            f"{where}: expected a list under {missing[0]!r} and the keys"
            f" {', '.join(KEYS)}"
        )
    ids, sentences, indices, labels = (record[key] for key in KEYS)
    counts = [len(each) for each in (sentences, labels, indices)]
    require(
        len(set(counts)) == 1, "as many sentences as labels and indices", counts, where
    )
    are_tokens = all(type(each) is int and 0 <= each < 2**32 for each in ids)
    require(
        are_tokens and _are_strings(sentences), "token ids and strings", record, where
    )
    text = "".join(sentences)
    read = tokenizer.decode(ids, skip_special_tokens=False)
    expected = (
        f"tokens that end with {text[-40:]!r} (give the tokenizer that made the file)"
    )
    require(read.endswith(text), expected, read[-40:], where)
    question = read[: len(read) - len(text)].strip()
    require(question, "a question before the sentences", read, where)
    spans = pairwise(accumulate(map(len, sentences), initial=0))
    own = (
        (
            start + len(sentence) - len(sentence.lstrip()),
            end - len(sentence) + len(sentence.rstrip()),
        )
        for (start, end), sentence, label in zip(spans, sentences, labels, strict=True)
        if label and sentence.strip()
    )
    return text, question, list(own)
