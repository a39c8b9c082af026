"""The files of judged corpora in the layouts of BEIR, LongEmbed and MLDR."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from spscanner_lab.evaluation.setting_run import Qrels
from spscanner_lab.evidence.data_lines import DataError, json_objects, require

_NEEDED = (
    "BEIR's corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv, LongEmbed's corpus.jsonl,"
    " queries.jsonl and qrels.jsonl, or MLDR's corpus.jsonl and SPLIT.jsonl"
)


class JudgedFiles(NamedTuple):
    """What the files of a corpus hold, by id.

    ``documents`` are records with ``title`` and ``text``.
    """

    documents: dict[str, Mapping[str, Any]]
    queries: dict[str, str]
    qrels: Qrels


def has_corpus(folder: Path) -> bool:
    """Whether a path is a folder in one of the layouts."""
    return _found(folder / "corpus.jsonl") is not None


def read_files(
    folder: Path, split: str, read_qrels: Callable[[Path], Qrels]
) -> JudgedFiles:
    """Read the files of a folder, whose layout their names say.

    LongEmbed has ``doc_id`` and ``qid`` in ``corpus.jsonl``, ``queries.jsonl`` and
    ``qrels.jsonl``. MLDR has ``docid`` in ``corpus.jsonl``, and ``SPLIT.jsonl`` of
    queries with ``positive_passages``. All may be ``.gz``. ``read_qrels`` reads BEIR's
    judgements. `DataError` if anything is missing, damaged or repeated.
    """
    if _found(folder / "qrels.jsonl") is not None:
        return _long_embed(folder)
    has_queries = _found(folder / "queries.jsonl") is not None
    if not has_queries and _found(folder / f"{split}.jsonl") is not None:
        return _mldr(folder, split)
    documents = dict(_records(folder, "corpus.jsonl", "_id"))
    queries = _texts(_records(folder, "queries.jsonl", "_id"), "text")
    return JudgedFiles(
        documents, queries, read_qrels(file_of(folder / "qrels" / f"{split}.tsv"))
    )


def _long_embed(folder: Path) -> JudgedFiles:
    """Read a task of LongEmbed (Zhu et al., 2024)."""
    documents = dict(_records(folder, "corpus.jsonl", "doc_id"))
    queries = _texts(_records(folder, "queries.jsonl", "qid"), "text")
    qrels: Qrels = {}
    path = file_of(folder / "qrels.jsonl")
    for number, record in json_objects(path, "a JSON object with qid and doc_id"):
        names = (record.get("qid"), record.get("doc_id"))
        are_names = all(isinstance(name, str) for name in names)
        require(are_names, "strings under qid and doc_id", names, _line(path, number))
        qrels.setdefault(str(names[0]), {})[str(names[1])] = 1
    return JudgedFiles(documents, queries, qrels)


def _mldr(folder: Path, split: str) -> JudgedFiles:
    """Read a language of MLDR (Chen et al., 2024)."""
    documents = dict(_records(folder, "corpus.jsonl", "docid"))
    queries = {}
    qrels: Qrels = {}
    name = f"{split}.jsonl"
    for qid, record in _records(folder, name, "query_id"):
        queries[qid] = str(record.get("query") or "")
        passages = record.get("positive_passages")
        ids = _ids_of(passages)
        expected = "a list of objects with docid under positive_passages"
        require(ids, expected, passages, f"{folder / name}, query {qid!r:.80}")
        qrels[qid] = dict.fromkeys(ids, 1)
    return JudgedFiles(documents, queries, qrels)


def _ids_of(passages: object) -> list[str]:
    """Return the ids of MLDR's passages, none if one lacks it."""
    if not isinstance(passages, list):
        return []
    ids = []
    for passage in passages:
        doc_id = passage.get("docid") if isinstance(passage, dict) else None
        if not isinstance(doc_id, str):
            return []
        ids.append(doc_id)
    return ids


def _texts(
    records: Iterator[tuple[str, Mapping[str, Any]]], key: str
) -> dict[str, str]:
    texts = {}
    for name, record in records:
        texts[name] = str(record.get(key) or "")
    return texts


def _records(
    folder: Path, name: str, key: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the records of a file with their ids, each once."""
    path = file_of(folder / name)
    expected = f"a JSON object with {key} and text"
    ids = set()
    for number, record in json_objects(path, expected):
        record_id = record.get(key)
        if not isinstance(record_id, str) or record_id in ids:
            is_text = isinstance(record_id, str)
            fault = "twice" if is_text else "that is not a string"
            raise DataError(
                f"{_line(path, number)}: got the id {record_id!r:.80} {fault}; expected"
                f" {expected}, each once"
            )
        ids.add(record_id)
        yield record_id, record


def _line(path: Path, number: int) -> str:
    return f"{path}, line {number}"


def _found(path: Path) -> Path | None:
    """Return a file, or the same with ``.gz``.

    None if neither exists.
    """
    for candidate in (path, path.with_name(f"{path.name}.gz")):
        if candidate.is_file():
            return candidate
    return None


def file_of(path: Path) -> Path:
    """Return a file, or the same with ``.gz``.

    `DataError` if neither exists.
    """
    existing = _found(path)
    if existing is None:
        raise DataError(f"{path}: no such file; expected {_NEEDED}")
    return existing
