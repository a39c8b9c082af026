"""The training files that the paper's authors released, as question files of this package.

Each record has ``input_ids`` (the tokens of the question, a line break and the document),
``full_text_sentences`` (strings that, joined, are the document), ``sentence_indices`` (the place of the last token
of each sentence in ``input_ids``) and ``sentence_labels`` (1 for a relevant sentence). The licence of the data
forbids to hand it on.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from spscanner_rag.files.json_files import parse_json
from spscanner_rag.lab.evidence.questions import DataError, numbered_lines

KEYS = ("input_ids", "full_text_sentences", "sentence_indices", "sentence_labels")


def read_released(
    paths: Sequence[Path], tokenizer: Tokenizer, source: str = "released"
) -> Iterator[dict[str, Any]]:
    """The records of released files, one JSON object a line, as lines of a question file.

    Parameters
    ----------
    paths : sequence of Path
        ``.jsonl`` or ``.jsonl.gz``.
    tokenizer : Tokenizer
        The one that made ``input_ids``: that of EleutherAI/gpt-neox-20b.
    source : str, default "released"
        The ``source`` of the documents.

    Raises
    ------
    DataError
        For a record that lacks a key, has labels or indices for another number of sentences, or whose tokens are
        not those of its sentences.
    """
    number = 0
    for path in paths:
        for line_number, line in numbered_lines(path):
            if not line.strip():
                continue
            where = f"{path}, line {line_number}"
            try:
                record = parse_json(line)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{where}: expected a JSON object, got {line[:60]!r} ({error})") from None
            yield converted(record, tokenizer, f"{source}-{number}", source, where)
            number += 1


def converted(
    record: Mapping[str, Any], tokenizer: Tokenizer, name: str, source: str, where: str
) -> dict[str, Any]:
    """One record as a line of a question file; its question is what stands before the sentences."""
    missing = [
        key for key in KEYS if not isinstance(record, Mapping) or not isinstance(record.get(key), list)
    ]
    if missing:
        raise DataError(f"{where}: expected a list under {missing[0]!r} and the keys {', '.join(KEYS)}")
    sentences, labels = record["full_text_sentences"], record["sentence_labels"]
    if not len(sentences) == len(labels) == len(record["sentence_indices"]):
        raise DataError(
            f"{where}: got {len(sentences)} sentences, {len(labels)} labels and "
            f"{len(record['sentence_indices'])} indices; expected as many of each"
        )
    text = "".join(sentences)
    read = tokenizer.decode(record["input_ids"], skip_special_tokens=False)
    if not read.endswith(text):
        raise DataError(
            f"{where}: the tokens end with {read[-40:]!r}, the sentences with {text[-40:]!r}; expected the same: "
            "give the tokenizer that made the file"
        )
    question = read[: len(read) - len(text)].strip()
    if not question:
        raise DataError(f"{where}: no token stands before the sentences; expected the question")
    ends = list(accumulate(map(len, sentences), initial=0))
    evidence = []
    for (start, end), label in zip(pairwise(ends), labels, strict=True):
        span = text[start:end]
        if label and span.strip():
            evidence.append([start + len(span) - len(span.lstrip()), end - len(span) + len(span.rstrip())])
    asked = {"qid": f"{name}-0", "question": question, "evidence": evidence, "answerable": bool(evidence)}
    return {
        "doc_id": name,
        "source": source,
        "split": "train",
        "title": "",
        "text": text,
        "questions": [asked],
    }


def released_record(
    line: Mapping[str, Any], units: Sequence[tuple[int, int]], tokenizer: Tokenizer
) -> dict[str, Any]:
    """The reverse: the record of a line of a question file with one question, whose units are given.

    ``units`` are spans of the text, each from the end of the one before it; together they are the whole text.
    """
    text, (question,) = line["text"], line["questions"]
    sentences = [text[start:end] for start, end in units]
    encoding = tokenizer.encode(f"{question['question'].strip()}\n{text}", add_special_tokens=False)
    before = len(question["question"].strip()) + 1
    lasts, token = [], 0
    for _, end in units:
        while token + 1 < len(encoding.offsets) and encoding.offsets[token + 1][1] <= before + end:
            token += 1
        lasts.append(token)
    labels = [
        int(any(start < stop and begin < end for begin, stop in question["evidence"])) for start, end in units
    ]
    values = (encoding.ids, sentences, lasts, labels)
    return dict(zip(KEYS, values, strict=True))


def write_line(line: Mapping[str, Any]) -> str:
    """A line of a question file."""
    return json.dumps(line) + "\n"
