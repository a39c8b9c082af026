"""The training files that the paper's authors released, as question files of this package.

Each record has ``input_ids`` (the tokens of the question, a line break and the document),
``full_text_sentences`` (strings that, joined, are the document), ``sentence_indices`` (the place of the last token
of each sentence in ``input_ids``) and ``sentence_labels`` (1 for a relevant sentence). The licence of the data
forbids to hand it on.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from spscanner_rag.lab.evidence.questions import DataError
from spscanner_rag.lab.synthesis.sources import json_objects

KEYS = ("input_ids", "full_text_sentences", "sentence_indices", "sentence_labels")


def read_released(paths: Sequence[Path], tokenizer: Tokenizer) -> Iterator[dict[str, Any]]:
    """Yield the records of released files as lines of a question file.

    ``tokenizer`` is the one that made ``input_ids``: that of EleutherAI/gpt-neox-20b. `DataError` for a record
    whose labels, indices or tokens are not those of its sentences.
    """
    records = (
        (f"{path}, line {number}", record)
        for path in paths
        for number, _, record in json_objects(path, "a JSON object")
    )
    for count, (where, record) in enumerate(records):
        text, question, evidence = _read(record, tokenizer, where)
        name = f"released-{count}"
        asked = {"qid": f"{name}-0", "question": question, "evidence": evidence, "answerable": bool(evidence)}
        yield {
            "doc_id": name,
            "source": "released",
            "split": "train",
            "title": "",
            "text": text,
            "questions": [asked],
        }


def _read(
    record: Mapping[str, Any], tokenizer: Tokenizer, where: str
) -> tuple[str, str, list[tuple[int, int]]]:
    """Return the text of a record, its question, which comes before the sentences, and the relevant spans."""
    missing = [key for key in KEYS if not isinstance(record.get(key), list)]
    if missing:
        raise DataError(f"{where}: expected a list under {missing[0]!r} and the keys {', '.join(KEYS)}")
    ids, sentences, indices, labels = (record[key] for key in KEYS)
    if not len(sentences) == len(labels) == len(indices):
        raise DataError(
            f"{where}: got {len(sentences)} sentences, {len(labels)} labels and {len(indices)} indices; expected "
            "as many of each"
        )
    text = "".join(sentences)
    read = tokenizer.decode(ids, skip_special_tokens=False)
    if not read.endswith(text):
        raise DataError(
            f"{where}: the tokens end with {read[-40:]!r}, the sentences with {text[-40:]!r}; expected the same: "
            "give the tokenizer that made the file"
        )
    question = read[: len(read) - len(text)].strip()
    if not question:
        raise DataError(f"{where}: no token stands before the sentences; expected the question")
    spans = pairwise(accumulate(map(len, sentences), initial=0))
    own = (
        (start + len(sentence) - len(sentence.lstrip()), end - len(sentence) + len(sentence.rstrip()))
        for (start, end), sentence, label in zip(spans, sentences, labels, strict=True)
        if label and sentence.strip()
    )
    return text, question, list(own)
