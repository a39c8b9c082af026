"""Corpora whose documents have judgements for each query: BEIR's folders, their study, and TREC's files."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from spscanner_lab.evaluation.corpora import Corpus
from spscanner_lab.evaluation.records import Record
from spscanner_lab.evaluation.result import rankings_table
from spscanner_lab.evaluation.run import Plan, Qrels
from spscanner_lab.evaluation.study import Study, arguments_of, asks_of
from spscanner_lab.evidence.questions import (
    DataError,
    Document,
    Question,
    json_objects,
    numbered_lines,
    require,
)
from spscanner_rag.baselines.settings import Setting
from spscanner_rag.system.whole_files import write_whole

Ranking = Sequence[
    tuple[str, float]
]  # ids of documents and their scores, the best first
TESTED = ("ndcg@10", "map")


@dataclass(frozen=True)
class JudgedCorpus:
    """Documents, and queries with the grades of documents."""

    name: str
    documents: tuple[
        Document, ...
    ]  # sorted by id; the order breaks ties between documents of equal score
    queries: dict[str, str]  # texts by id, of the queries with a relevant document
    qrels: Qrels  # above 0 is relevant
    left_out: int  # queries without a relevant document


def is_beir(folder: Path) -> bool:
    """Whether a path is a folder in BEIR's layout."""
    return any(
        (folder / name).is_file() for name in ("corpus.jsonl", "corpus.jsonl.gz")
    )


def read_beir(folder: Path, split: str = "test") -> JudgedCorpus:
    """Read ``corpus.jsonl``, ``queries.jsonl`` (either may be ``.gz``) and ``qrels/SPLIT.tsv``.

    A document's text is its title, a line break and its text. `DataError` if anything
    is missing, damaged or repeated, if a judgement has an unknown id, or if no query
    has a relevant document.
    """
    documents = []
    for doc_id, record in _records(folder, "corpus"):
        title, text = (str(record.get(key) or "") for key in ("title", "text"))
        documents.append(
            Document(
                doc_id, folder.name, title, f"{title}\n{text}" if title else text, ()
            )
        )
    queries = {
        qid: str(record.get("text") or "")
        for qid, record in _records(folder, "queries")
    }
    qrels = read_qrels(_file(folder / "qrels", f"{split}.tsv"))
    known = {document.doc_id for document in documents}
    require(documents, "at least one document", documents, str(folder / "corpus.jsonl"))
    for query, grades in qrels.items():
        unknown = sorted(grades.keys() - known)
        if query not in queries or unknown:
            named = (
                f"query {query!r:.80}"
                if query not in queries
                else f"document {unknown[0]!r:.80}"
            )
            raise DataError(
                f"{folder}: the judgements name the {named}, which does not exist;"
                " expected only queries and documents of the folder: is the corpus"
                " complete, and do the judgements belong to it?"
            )
    asked = {
        query
        for query, grades in qrels.items()
        if max(grades.values()) > 0 and queries[query].strip()
    }
    if not asked:
        raise DataError(
            f"{folder}: no query of {split!r} has a relevant document; expected at"
            " least one"
        )
    documents.sort(key=lambda document: document.doc_id)
    own = {query: text for query, text in queries.items() if query in asked}
    return JudgedCorpus(
        folder.name, tuple(documents), own, qrels, len(qrels) - len(asked)
    )


def read_qrels(path: Path) -> Qrels:
    """Read judgements: TREC's lines ``query 0 document grade``, or BEIR's ``query document grade`` with a header.

    `DataError` for a line of another form, a document judged twice for a query, or a
    file without judgements.
    """
    qrels: Qrels = {}
    for number, line in numbered_lines(path):
        words = line.decode("utf-8", "replace").split()
        if not words:
            continue
        if number == 1 and len(words) == 3 and words[2] == "score":  # BEIR's header
            continue
        is_grade = len(words) in (3, 4) and re.fullmatch(r"-?\d{1,9}", words[-1])
        require(
            is_grade,
            "query, document, grade",
            " ".join(words),
            f"{path}, line {number}",
        )
        query, document = words[0], words[-2]
        if document in qrels.setdefault(query, {}):
            raise DataError(
                f"{path}, line {number}: document {document!r:.80} is judged twice for"
                f" query {query!r:.80}; expected one grade"
            )
        qrels[query][document] = int(words[-1])
    require(qrels, "a line for each query and judged document", qrels, str(path))
    return qrels


def judged_study_of(
    settings: Sequence[Setting], judged: JudgedCorpus, plan: Plan, seed: int = 0
) -> Study:
    """The run that ranks the documents of a judged corpus for all its queries.

    See `corpus_study_of`.
    """
    queries = [  # each has an empty document, which gives it a distinct name
        (Document(qid, judged.name, "", "", ()), Question(qid, text, ()))
        for qid, text in judged.queries.items()
    ]
    corpus = Corpus(judged.name, judged.documents, queries)
    content = json.dumps([judged.queries, judged.qrels], sort_keys=True).encode("ascii")
    counts = len(judged.queries), len(judged.documents), judged.left_out
    return Study(
        settings,
        {judged.name: ()},
        seed,
        asks=[
            replace(ask, qrels=judged.qrels)
            for ask in asks_of(settings, [corpus], plan)
        ],
        arguments=arguments_of([corpus], {judged.name: ()}, plan)
        | {"judgements": hashlib.sha256(content).hexdigest()},
        plan=plan,
        tested=(TESTED, TESTED),
        tables=lambda result: [rankings_table(result, *counts)],
    )


def write_runs(
    records: Iterable[Record], settings: Iterable[Setting], folder: Path
) -> None:
    """Write the rankings of each setting as a TREC run."""
    for setting in settings:
        plain = re.sub(r"[^A-Za-z0-9.@-]+", "-", setting.label).strip("-.")[:80]
        name = f"{plain}-{hashlib.sha256(setting.label.encode()).hexdigest()[:6]}.trec"
        run = {
            r.qid: list(r.ranking.items())
            for r in records
            if r.setting_key == setting.key and r.ranking
        }
        write_run(folder / name, run, setting.label)


def write_run(path: Path, run: Mapping[str, Ranking], tag: str) -> None:
    """Write rankings whole or not at all.

    ``ValueError`` for an id that is empty or contains white space.

    trec_eval sorts by the scores, in float32, and breaks ties by the names of
    documents. So, to keep the order, a score that is not below the previous one is
    written as the next number below it.
    """
    lines = []
    name = "-".join(tag.split()) or "run"
    for query, found in run.items():
        last = np.float32(np.inf)
        for rank, (document, score) in enumerate(found, 1):
            for own in (query, document):
                if own.split() != [own]:
                    raise ValueError(
                        f"{path}: got the id {own!r:.80}; expected one without white"
                        " space"
                    )
            last = min(np.float32(score), np.nextafter(last, np.float32(-np.inf)))
            lines.append(f"{query} Q0 {document} {rank} {last:.9g} {name}\n")
    write_whole(path, "".join(lines))


def _records(folder: Path, name: str) -> Iterator[tuple[str, dict[str, object]]]:
    path, known, expected = (
        _file(folder, f"{name}.jsonl"),
        set(),
        "a JSON object with _id and text",
    )
    for number, record in json_objects(path, expected):
        own = record.get("_id")
        if not isinstance(own, str) or own in known:
            fault = "twice" if isinstance(own, str) else "that is not a string"
            raise DataError(
                f"{path}, line {number}: got the id {own!r:.80} {fault}; expected"
                f" {expected}, each once"
            )
        known.add(own)
        yield own, record


def _file(folder: Path, name: str) -> Path:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise DataError(
        f"{folder / name}: no such file; expected BEIR's corpus.jsonl, queries.jsonl"
        " and qrels/*.tsv"
    )
