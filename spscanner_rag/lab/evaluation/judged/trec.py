"""Judgements and rankings in the files of TREC, which trec_eval and ir-measures read."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from spscanner_rag.checkpoint.whole_file import write_whole
from spscanner_rag.lab.evidence.questions import DataError, numbered_lines

Qrels = dict[str, dict[str, int]]
"""The grade of each judged document, by query and document."""

Run = Mapping[str, Sequence[tuple[str, float]]]
"""Documents with their scores, the best first, by query."""

_NAME = re.compile(r"\S+")


def read_qrels(path: Path) -> Qrels:
    """Read judgements: TREC's lines ``query 0 document grade``, or BEIR's ``query document grade`` with a header.

    Raises
    ------
    DataError
        For a line of another form, a document judged twice for a query, or a file without judgements.
    """
    qrels: Qrels = {}
    for number, words in _rows(path):
        if number == 1 and len(words) == 3 and words[2] == "score":  # BEIR's header
            continue
        if len(words) not in (3, 4) or not re.fullmatch(r"-?\d{1,9}", words[-1]):
            raise DataError(
                f"{path}, line {number}: got {' '.join(words)!r:.80}; expected query, document, grade"
            )
        query, document = words[0], words[-2]
        if document in qrels.setdefault(query, {}):
            raise DataError(
                f"{path}, line {number}: document {document!r:.80} is judged twice for query {query!r:.80}; "
                "expected one grade"
            )
        qrels[query][document] = int(words[-1])
    if not qrels:
        raise DataError(f"{path}: got no judgement; expected a line for each query and judged document")
    return qrels


def read_run(path: Path) -> dict[str, list[tuple[str, float]]]:
    """Read rankings, lines ``query Q0 document rank score tag``; sorted by score, then as in the file.

    Raises
    ------
    DataError
        For a line of another form.
    """
    run: dict[str, list[tuple[str, float]]] = {}
    for number, words in _rows(path):
        try:
            query, _, document, _, score, _ = words
            run.setdefault(query, []).append((document, float(score)))
        except ValueError:
            raise DataError(
                f"{path}, line {number}: got {' '.join(words)!r:.80}; expected query, Q0, document, "
                "rank, score, tag"
            ) from None
    return {query: sorted(found, key=lambda pair: -pair[1]) for query, found in run.items()}


def write_run(path: Path, run: Run, tag: str) -> None:
    """Write rankings whole or not at all.

    trec_eval goes by the scores, in float32, and breaks ties by the names of documents; so a score that is not
    below the one before is written as the next number below it, and the order is kept.

    Raises
    ------
    ValueError
        For the id of a query or document that is empty or contains white space, which the format cannot hold.
    """
    lines = []
    name = "-".join(tag.split()) or "run"
    for query, found in run.items():
        last = np.float32(np.inf)
        for rank, (document, score) in enumerate(found, 1):
            for own in (query, document):
                if not _NAME.fullmatch(own):
                    raise ValueError(f"{path}: got the id {own!r:.80}; expected one without white space")
            last = min(np.float32(score), np.nextafter(last, np.float32(-np.inf)))
            lines.append(f"{query} Q0 {document} {rank} {last:.9g} {name}\n")
    write_whole(path, "".join(lines))


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    for number, line in numbered_lines(path):
        if words := line.decode("utf-8", "replace").split():
            yield number, words
