"""Corpora whose documents have judgements for each query."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from spscanner_lab.evaluation.judged_layouts import has_corpus, read_files
from spscanner_lab.evaluation.setting_run import Qrels
from spscanner_lab.evidence.data_lines import DataError, numbered_lines, require
from spscanner_lab.evidence.questions import Document


@dataclass(frozen=True)
class JudgedCorpus:
    """Documents, and queries with the grades of documents.

    ``documents`` are sorted by id; the order breaks ties between documents of equal
    score. ``queries`` are the texts by id, of the queries with a relevant document. A
    grade above 0 in ``qrels`` is relevant. ``left_out`` counts the queries without a
    relevant document.
    """

    name: str
    documents: tuple[Document, ...]
    queries: dict[str, str]
    qrels: Qrels
    left_out: int


def is_beir(folder: Path) -> bool:
    """Whether a path is a folder in the layout of BEIR, LongEmbed or MLDR."""
    return has_corpus(folder)


def read_beir(folder: Path, split: str = "test") -> JudgedCorpus:
    """Read a folder in the layout of BEIR, LongEmbed or MLDR.

    See `read_files`. A document's text is its title, a line break and its text.
    `DataError` if anything is missing, damaged or repeated, if a judgement has an
    unknown id, or if no query has a relevant document.
    """
    records, texts_by_query, qrels = read_files(folder, split, read_qrels)
    documents = []
    for doc_id, record in records.items():
        documents.append(_document(doc_id, folder.name, record))
    require(documents, "at least one document", documents, str(folder / "corpus.jsonl"))
    _check_names(folder, qrels, documents, texts_by_query)
    relevant_queries = set()
    for query, grades in qrels.items():
        if max(grades.values()) > 0 and texts_by_query[query].strip():
            relevant_queries.add(query)
    if not relevant_queries:
        raise DataError(
            f"{folder}: no query of {split!r} has a relevant document; expected at"
            " least one"
        )
    documents.sort(key=lambda document: document.doc_id)
    queries = {}
    for query, text in texts_by_query.items():
        if query in relevant_queries:
            queries[query] = text
    left_out = len(qrels) - len(relevant_queries)
    return JudgedCorpus(folder.name, tuple(documents), queries, qrels, left_out)


def _document(doc_id: str, source: str, record: Mapping[str, object]) -> Document:
    title = str(record.get("title") or "")
    text = str(record.get("text") or "")
    if title:
        text = f"{title}\n{text}"
    return Document(doc_id, source, title, text, ())


def _check_names(
    folder: Path,
    qrels: Qrels,
    documents: list[Document],
    texts_by_query: Mapping[str, str],
) -> None:
    """Raise `DataError` for a judgement with an unknown id."""
    doc_ids = {document.doc_id for document in documents}
    for query, grades in qrels.items():
        unknown = sorted(grades.keys() - doc_ids)
        if query in texts_by_query and not unknown:
            continue
        if query in texts_by_query:
            name = f"document {unknown[0]!r:.80}"
        else:
            name = f"query {query!r:.80}"
        raise DataError(
            f"{folder}: the judgements name the {name}, which does not exist;"
            " expected only queries and documents of the folder: is the corpus"
            " complete, and do the judgements belong to it?"
        )


def read_qrels(path: Path) -> Qrels:
    """Read judgements, of TREC or of BEIR.

    TREC's lines are ``query 0 document grade``, BEIR's ``query document grade`` after a
    header. `DataError` for a line of another form, a document judged twice for a query,
    or a file without judgements.
    """
    qrels: Qrels = {}
    for number, line in numbered_lines(path):
        words = line.decode("utf-8", "replace").split()
        if not words:
            continue
        if number == 1 and len(words) == 3 and words[2] == "score":  # BEIR's header
            continue
        where = f"{path}, line {number}"
        is_grade = len(words) in (3, 4) and re.fullmatch(r"-?\d{1,9}", words[-1])
        require(is_grade, "query, document, grade", " ".join(words), where)
        query = words[0]
        document = words[-2]
        if document in qrels.setdefault(query, {}):
            raise DataError(
                f"{where}: document {document!r:.80} is judged twice for"
                f" query {query!r:.80}; expected one grade"
            )
        qrels[query][document] = int(words[-1])
    require(qrels, "a line for each query and judged document", qrels, str(path))
    return qrels
