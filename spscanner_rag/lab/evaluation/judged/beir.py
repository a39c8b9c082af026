"""BEIR's folders: a corpus, queries, and the grades of documents."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from spscanner_rag.files.json_files import parse_json
from spscanner_rag.lab.evaluation.judged.trec import Qrels, read_qrels
from spscanner_rag.lab.evidence.questions import DataError, Document, numbered_lines


@dataclass(frozen=True)
class JudgedCorpus:
    """Documents, and queries with the grades of documents.

    Attributes
    ----------
    name
    documents
        Sorted by their ids; the order decides between documents of equal score.
    queries
        Texts by id, of those that have a relevant document.
    qrels
        Grades by query and document; above 0 is relevant.
    left_out
        Number of queries without a relevant document.
    """

    name: str
    documents: tuple[Document, ...]
    queries: dict[str, str]
    qrels: Qrels
    left_out: int


def is_beir(folder: Path) -> bool:
    """Whether a path is a folder in BEIR's layout."""
    return any((folder / name).is_file() for name in ("corpus.jsonl", "corpus.jsonl.gz"))


def read_beir(folder: Path, split: str = "test") -> JudgedCorpus:
    """Read ``corpus.jsonl``, ``queries.jsonl`` (either may be ``.gz``) and ``qrels/SPLIT.tsv``.

    A document's text is its title, a line break and its text.

    Raises
    ------
    DataError
        For a missing file, a damaged line, an id given twice, an empty corpus, a judgement of an unknown query or
        document, or if no query has a relevant document.
    """
    documents = []
    for doc_id, record in _records(folder, "corpus"):
        title, text = (str(record.get(key) or "") for key in ("title", "text"))
        documents.append(Document(doc_id, folder.name, title, f"{title}\n{text}" if title else text, ()))
    queries = {qid: str(record.get("text") or "") for qid, record in _records(folder, "queries")}
    qrels = read_qrels(_file(folder / "qrels", f"{split}.tsv"))
    known = {document.doc_id for document in documents}
    if not documents:
        raise DataError(f"{folder}: the corpus has no document; expected at least one")
    for query, grades in qrels.items():
        unknown = sorted(grades.keys() - known)
        if query not in queries or unknown:
            named = f"query {query!r:.80}" if query not in queries else f"document {unknown[0]!r:.80}"
            raise DataError(
                f"{folder}: the judgements name the {named}, which is not there; expected only queries and "
                "documents of the folder: is the corpus whole, and are the judgements its own?"
            )
    asked = {query for query, grades in qrels.items() if max(grades.values()) > 0 and queries[query].strip()}
    if not asked:
        raise DataError(f"{folder}: no query of {split!r} has a relevant document; expected at least one")
    documents.sort(key=lambda document: document.doc_id)
    own = {query: text for query, text in queries.items() if query in asked}
    return JudgedCorpus(folder.name, tuple(documents), own, qrels, len(qrels) - len(asked))


def _records(folder: Path, name: str) -> Iterator[tuple[str, dict[str, object]]]:
    path, known = _file(folder, f"{name}.jsonl"), set()
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            record = parse_json(line)
            own = record["_id"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError(
                f"{path}, line {number}: expected a JSON object with _id and text, got {error}"
            ) from None
        if not isinstance(own, str) or own in known:
            fault = "twice" if isinstance(own, str) else "that is no string"
            raise DataError(f"{path}, line {number}: got the id {own!r:.80} {fault}; expected each once")
        known.add(own)
        yield own, record


def _file(folder: Path, name: str) -> Path:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise DataError(
        f"{folder / name}: no such file; expected BEIR's corpus.jsonl, queries.jsonl and qrels/*.tsv"
    )
