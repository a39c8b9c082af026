"""A corpus in a folder: read back as it was, whole or not at all, and refused by name if it is not ours."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spscanner_rag.checkpoint import whole_file
from spscanner_rag.lexical.match import PLAIN_MATCH
from spscanner_rag.retrieval.corpus import Corpus
from spscanner_rag.retrieval.corpus_folder import check_json, read_corpus, write_corpus
from spscanner_rag.retrieval.joined_text import JoinedText
from spscanner_rag.retrieval.pieces import Piece, join_pieces

TEXTS = ["Cut the leek. Boil the soup.", "The viper sleeps.\nIt is a snake. \ud800 東京", ""]
VALUES = [1, 2.5, None, True, {"b": "\ud800"}]
RECORDS = [{"text": text, "metadata": {"n": number, "a": VALUES}} for number, text in enumerate(TEXTS)]


def joined(texts: list[str]) -> list[JoinedText]:
    return join_pieces([Piece(text=text, key=str(n), source=n, start=0) for n, text in enumerate(texts)])


@pytest.fixture
def corpus() -> Corpus:
    return Corpus().with_texts(joined(TEXTS))


@pytest.fixture
def folder(tmp_path: Path, corpus: Corpus) -> Path:
    write_corpus(tmp_path / "kept", "ours", RECORDS, corpus)
    return tmp_path / "kept"


def names(folder: Path) -> list[str]:
    return sorted(place.name.partition(".")[2] for place in folder.iterdir())


def test_what_was_written_is_read(folder: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    for array in folder.glob("*.npy"):  # mapped, and not pickled
        assert isinstance(np.load(array, mmap_mode="r", allow_pickle=False), np.memmap)
    documents, loaded = read_corpus(folder, "ours")
    assert documents == RECORDS
    monkeypatch.setattr(type(loaded.counts), "add", None)  # nothing is counted again
    loaded = loaded.with_texts(joined(TEXTS))
    for query in ("soup", "a sleeping snake", "東京"):
        assert loaded.ranked(query) == corpus.ranked(query)
    statistics = loaded.counts.statistics("soup", PLAIN_MATCH)
    assert statistics.idf.tolist() == corpus.counts.statistics("soup", PLAIN_MATCH).idf.tolist()


def test_an_empty_corpus_is_kept_too(tmp_path: Path) -> None:
    write_corpus(tmp_path, "ours", [], Corpus())
    documents, loaded = read_corpus(str(tmp_path), "ours")
    assert (documents, len(loaded.counts), loaded.ranked("x")) == ([], 0, [])


def test_a_loaded_corpus_changes_and_is_written_over_itself(folder: Path, corpus: Corpus) -> None:
    _, loaded = read_corpus(folder, "ours")
    more = joined([*TEXTS, "Mice and snakes."])
    changed = loaded.with_texts(more)
    write_corpus(folder, "ours", RECORDS[:1], changed)
    documents, again = read_corpus(folder, "ours")
    assert documents == RECORDS[:1]
    assert again.with_texts(more).ranked("mice") == changed.ranked("mice")
    assert len(names(folder)) == len(set(names(folder)))  # the earlier files are gone
    assert loaded.with_texts(joined(TEXTS)).ranked("soup") == corpus.ranked("soup")  # still usable


@pytest.mark.parametrize("after", [0, 1, 5, 8])
def test_a_killed_program_leaves_the_folder_as_it_was(
    folder: Path, corpus: Corpus, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    replaces = []
    replace = os.replace

    def killed(source: Any, target: Any) -> None:
        replaces.append(target)
        if len(replaces) > after:
            raise Killed
        replace(source, target)

    before = names(folder)
    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(Killed):
        write_corpus(folder, "ours", RECORDS[1:], corpus)
    monkeypatch.undo()
    assert read_corpus(folder, "ours")[0] == RECORDS
    write_corpus(folder, "ours", RECORDS[1:], corpus)
    assert read_corpus(folder, "ours")[0] == RECORDS[1:]
    assert names(folder) == before  # nothing of the killed attempt is left


def test_a_killed_first_attempt_can_be_repeated(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, text: str) -> None:
        raise OSError("disk is full")

    monkeypatch.setattr(whole_file, "write_whole", full)
    with pytest.raises(OSError, match="disk is full"):
        write_corpus(tmp_path, "ours", RECORDS, corpus)
    monkeypatch.undo()
    with pytest.raises(ValueError, match=r"got no manifest\.json there"):
        read_corpus(tmp_path, "ours")
    write_corpus(tmp_path, "ours", RECORDS, corpus)
    assert read_corpus(tmp_path, "ours")[0] == RECORDS


@pytest.mark.parametrize("kind", ["manifest", "documents", "array"])
@pytest.mark.parametrize("damage", ["cut", "changed", "missing", "empty"])
def test_a_damaged_file_is_named(folder: Path, kind: str, damage: str) -> None:
    pattern = {"manifest": "manifest.json", "documents": "*.jsonl", "array": "*.units.npy"}[kind]
    (place,) = folder.glob(pattern)
    data = place.read_bytes()
    if damage == "missing":
        place.unlink()
    else:
        middle = len(data) // 2
        changed = data[:middle] + bytes([data[middle] ^ 0x90]) + data[middle + 1 :]
        place.write_bytes({"cut": data[:-3], "changed": changed, "empty": b""}[damage])
    with pytest.raises(
        ValueError, match=place.name if damage != "missing" else "manifest.json|is missing"
    ) as error:
        read_corpus(folder, "ours")
    assert "persist" in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "index"}, "manifest of something else"),
        ({"format": 2}, "got format 2; expected 1"),
        ({"framework": "another"}, "got documents of 'another'; expected those of 'ours'"),
        ({"files": []}, "does not list the files"),
        ({"files": {"documents.jsonl": {"file": "../../etc/passwd"}}}, "does not list the files"),
        ({"files": {"documents.jsonl": "x"}}, "does not list the files"),
    ],
)
def test_a_foreign_manifest_is_refused(folder: Path, change: dict[str, Any], message: str) -> None:
    place = folder / "manifest.json"
    place.write_text(json.dumps(json.loads(place.read_text("utf-8")) | change), "utf-8")
    with pytest.raises(ValueError, match=message):
        read_corpus(folder, "ours")


def test_arrays_that_do_not_fit_are_refused(folder: Path) -> None:
    place = folder / "manifest.json"
    manifest = json.loads(place.read_text("utf-8"))
    manifest["files"]["units"] = manifest["files"]["stops"]
    place.write_text(json.dumps(manifest), "utf-8")
    with pytest.raises(ValueError, match="has an index that cannot be used"):
        read_corpus(folder, "ours")


def test_a_foreign_folder_is_neither_read_nor_written(tmp_path: Path, corpus: Corpus) -> None:
    with pytest.raises(ValueError, match=r"got no manifest\.json there; expected a folder that persist"):
        read_corpus(tmp_path / "none", "ours")
    (tmp_path / "photo.jpg").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"other files, such as 'photo\.jpg'"):
        write_corpus(tmp_path, "ours", RECORDS, corpus)
    with pytest.raises(ValueError, match="got a file; expected a folder"):
        write_corpus(tmp_path / "photo.jpg", "ours", RECORDS, corpus)
    (tmp_path / "manifest.json").write_text('{"kind": "web app"}', "utf-8")
    with pytest.raises(ValueError, match="manifest of something else"):
        write_corpus(tmp_path, "ours", RECORDS, corpus)
    assert sorted(place.name for place in tmp_path.iterdir()) == ["manifest.json", "photo.jpg"]


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({"when": {1, 2}}, r"metadata\['when'\] of d is set"),
        ({"a": {"b": (1, 2)}}, r"metadata\['a'\]\['b'\] of d is tuple"),
        ({"a": {1: "x"}}, r"a key of metadata\['a'\] of d is int"),
        ({"a": float("nan")}, r"metadata\['a'\] of d is float nan"),
        ({"a": b"x"}, "is bytes"),
    ],
)
def test_what_json_cannot_keep_is_named_and_nothing_is_written(
    tmp_path: Path, corpus: Corpus, value: dict[str, Any], named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        check_json(value, "metadata", "d")
    with pytest.raises(ValueError, match="JSON cannot keep"):
        write_corpus(tmp_path / "new", "ours", [{"metadata": value}], corpus)
    assert not (tmp_path / "new").exists()


def test_a_document_is_named_by_its_id_and_serialized_once(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [{"id": "a", "metadata": {}}, {"id": None, "metadata": {"when": {1}}}]
    with pytest.raises(ValueError, match=r"metadata\['when'\] of document 2 is set"):
        write_corpus(tmp_path, "ours", records, corpus)
    records[1]["id"] = "b"
    with pytest.raises(ValueError, match=r"metadata\['when'\] of document 'b' is set"):
        write_corpus(tmp_path, "ours", records, corpus)
    written = []
    dumps = json.dumps
    monkeypatch.setattr(
        json, "dumps", lambda value, **options: written.append(value) or dumps(value, **options)
    )
    write_corpus(tmp_path, "ours", RECORDS, corpus)
    assert [value for value in written if value in RECORDS] == RECORDS
