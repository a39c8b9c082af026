"""Rankings of documents as TREC's run files."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from spscanner_lab.evaluation.records import Record
from spscanner_rag.baselines.settings import Setting
from spscanner_rag.system.whole_files import write_whole

Ranking = Sequence[tuple[str, float]]
"""Ids of documents and their scores, the best first."""


def write_runs(
    records: Iterable[Record], settings: Iterable[Setting], folder: Path
) -> None:
    """Write the rankings of each setting as a TREC run."""
    records = list(records)
    for setting in settings:
        plain = re.sub(r"[^A-Za-z0-9.@-]+", "-", setting.label).strip("-.")[:80]
        digest = hashlib.sha256(setting.label.encode()).hexdigest()
        run: dict[str, Ranking] = {}
        for record in records:
            if record.setting_key == setting.key and record.ranking:
                run[record.qid] = list(record.ranking.items())
        write_run(folder / f"{plain}-{digest[:6]}.trec", run, setting.label)


def write_run(path: Path, run: Mapping[str, Ranking], tag: str) -> None:
    """Write rankings whole or not at all.

    ``ValueError`` for an id that is empty or contains white space.

    trec_eval sorts by the scores, in float32, and breaks ties by the names of
    documents. So, to keep the order, a score that is not below the previous one is
    written as the next number below it.
    """
    lines = []
    name = "-".join(tag.split()) or "run"
    for query, ranking in run.items():
        last = np.float32(np.inf)
        for rank, (document, score) in enumerate(ranking, 1):
            _check_id(path, query)
            _check_id(path, document)
            last = min(np.float32(score), np.nextafter(last, np.float32(-np.inf)))
            lines.append(f"{query} Q0 {document} {rank} {last:.9g} {name}\n")
    write_whole(path, "".join(lines))


def _check_id(path: Path, name: str) -> None:
    if name.split() != [name]:
        raise ValueError(
            f"{path}: got the id {name!r:.80}; expected one without white space"
        )
