"""A corpus in a folder: read back unchanged or not at all, and refused if foreign."""

import json
import os
import pickle
import threading
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spscanner_rag.lexical.lexical_scores import PLAIN_MATCH
from spscanner_rag.retrieval import corpus_folder
from spscanner_rag.retrieval.corpus_folder import read_corpus, write_corpus
from spscanner_rag.retrieval.held_texts import HeldTexts
from spscanner_rag.retrieval.json_values import check_json
from tests.retrieval.searching import joined

TEXTS = [
    "Cut the leek. Boil the soup.",
    "The viper sleeps.\nIt is a snake. \ud800 東京",
    "",
]
VALUES = [1, 2.5, None, True, {"b": "\ud800"}]
RECORDS = [
    {"text": text, "metadata": {"n": number, "a": VALUES}}
    for number, text in enumerate(TEXTS)
]

N_FILES = 11
"""Files in a folder: the documents, nine arrays, the manifest."""
needs_locks = pytest.mark.skipif(os.name == "nt", reason="no lock of a folder")


@pytest.fixture
def corpus() -> HeldTexts:
    return HeldTexts().with_texts(joined(TEXTS))


@pytest.fixture
def folder(tmp_path: Path, corpus: HeldTexts) -> Path:
    write_corpus(tmp_path / "kept", "ours", RECORDS, corpus)
    return tmp_path / "kept"


def names(folder: Path) -> list[str]:
    return sorted(place.name.partition(".")[2] for place in folder.iterdir())


def test_what_was_written_is_read(
    folder: Path, corpus: HeldTexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    for array in folder.glob("*.npy"):  # memory-mapped, and not pickled
        assert isinstance(np.load(array, mmap_mode="r", allow_pickle=False), np.memmap)
    documents, loaded = read_corpus(folder, "ours")
    assert documents == RECORDS
    monkeypatch.setattr(type(loaded.counts), "add", None)  # nothing is counted again
    loaded = loaded.with_texts(joined(TEXTS))
    for query in ("soup", "a sleeping snake", "東京"):
        assert loaded.ranking(query) == corpus.ranking(query)
    statistics = loaded.counts.statistics("soup", PLAIN_MATCH)
    assert (
        statistics.idf.tolist()
        == corpus.counts.statistics("soup", PLAIN_MATCH).idf.tolist()
    )


class Killed(BaseException):
    pass


def write_killed(folder: Path, corpus: HeldTexts, after: int) -> None:
    """A call that is killed after some files have reached the disk.

    The manifest is the last one.
    """
    synced: list[int] = []

    def killed(*arguments: Any, **options: Any) -> None:
        raise Killed

    def sync(descriptor: int) -> None:
        synced.append(descriptor)
        if len(synced) > after:
            raise Killed

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", sync)
        patched.setattr(Path, "unlink", killed)  # a dead program cleans nothing up
        with pytest.raises(Killed):
            write_corpus(folder, "ours", RECORDS[1:], corpus)


@pytest.mark.parametrize("after", [0, 1, 5, N_FILES - 1])
def test_a_killed_program_leaves_the_folder_as_it_was(
    folder: Path, corpus: HeldTexts, after: int
) -> None:
    before = names(folder)
    write_killed(folder, corpus, after)
    assert len(names(folder)) > len(before)
    assert read_corpus(folder, "ours")[0] == RECORDS
    write_corpus(folder, "ours", RECORDS[1:], corpus)
    assert read_corpus(folder, "ours")[0] == RECORDS[1:]
    assert names(folder) == before  # nothing of the killed attempt is left
    write_killed(
        folder.parent / "first", corpus, after
    )  # its remains do not make the folder foreign
    write_corpus(folder.parent / "first", "ours", RECORDS, corpus)
    assert names(folder.parent / "first") == before


def test_an_error_leaves_nothing(
    folder: Path, corpus: HeldTexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = names(folder)

    def full(*arguments: Any, **options: Any) -> None:
        raise OSError("disk is full")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(OSError, match="disk is full"):
        write_corpus(folder, "ours", RECORDS[1:], corpus)
    assert names(folder) == before


@needs_locks
@pytest.mark.parametrize("paused", ["documents", "arrays", "manifest"])
def test_calls_wait(
    folder: Path, corpus: HeldTexts, paused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def pausing(real: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            if threading.current_thread().name == "first" and not reached.is_set():
                reached.set()
                assert go_on.wait(20)
            return real(*arguments, **options)

        return call

    where, name = {
        "documents": (os, "fsync"),
        "arrays": (np, "save"),
        "manifest": (os, "replace"),
    }[paused]
    monkeypatch.setattr(where, name, pausing(getattr(where, name)))
    first = threading.Thread(
        target=write_corpus, args=(folder, "ours", RECORDS[:1], corpus), name="first"
    )
    second = threading.Thread(
        target=write_corpus, args=(folder, "ours", RECORDS[:2], corpus)
    )
    first.start()
    assert reached.wait(20)
    second.start()
    second.join(0.1)  # without a lock it would be done by now
    assert read_corpus(folder, "ours")[0] == RECORDS  # reading waits for no writer
    go_on.set()
    first.join(20)
    second.join(20)
    assert read_corpus(folder, "ours")[0] == RECORDS[:2]
    assert len(names(folder)) == N_FILES


@pytest.mark.parametrize("moment", ["read_manifest", "size_and_digest"])
def test_a_folder_that_is_written_while_it_is_read_gives_the_old_or_the_new(
    folder: Path, corpus: HeldTexts, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = getattr(corpus_folder, moment)

    def written_after(*arguments: Any) -> Any:
        found = real(*arguments)
        monkeypatch.setattr(corpus_folder, moment, real)
        write_corpus(folder, "ours", RECORDS[:2], corpus)
        return found

    monkeypatch.setattr(corpus_folder, moment, written_after)
    documents, loaded = read_corpus(folder, "ours")
    assert documents == RECORDS[:2]  # the old files are gone by now
    assert loaded.with_texts(joined(TEXTS)).ranking("soup") == corpus.ranking("soup")
    assert read_corpus(folder, "ours")[0] == RECORDS[:2]


@pytest.mark.parametrize("kind", ["manifest", "documents", "array"])
@pytest.mark.parametrize("damage", ["cut", "changed", "missing", "empty", "a terabyte"])
def test_a_damaged_file_is_named(folder: Path, kind: str, damage: str) -> None:
    pattern = {
        "manifest": "manifest.json",
        "documents": "*.jsonl",
        "array": "*.units.npy",
    }[kind]
    (place,) = folder.glob(pattern)
    data = place.read_bytes()
    if damage == "missing":
        place.unlink()
    elif damage == "a terabyte":
        os.truncate(place, 2**40)  # sparse; a digest of it would take an hour
    else:
        middle = len(data) // 2
        changed = data[:middle] + bytes([data[middle] ^ 0x90]) + data[middle + 1 :]
        place.write_bytes({"cut": data[:-3], "changed": changed, "empty": b""}[damage])
    with pytest.raises(
        ValueError,
        match=place.name if damage != "missing" else "manifest.json|is missing",
    ) as error:
        read_corpus(folder, "ours")
    assert "persist" in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "index"}, "manifest of another program"),
        ({"format": 2}, "got format 2; expected 1"),
        (
            {"framework": "another"},
            "got documents of 'another'; expected those of 'ours'",
        ),
        ({"files": []}, "does not list the files"),
        (
            {"files": {"documents.jsonl": {"file": "../../etc/passwd"}}},
            "does not list the files",
        ),
        ({"files": {"documents.jsonl": "x"}}, "does not list the files"),
    ],
)
def test_a_foreign_manifest_is_refused(
    folder: Path, change: dict[str, Any], message: str
) -> None:
    place = folder / "manifest.json"
    place.write_text(json.dumps(json.loads(place.read_text("utf-8")) | change), "utf-8")
    with pytest.raises(ValueError, match=message):
        read_corpus(folder, "ours")


def forged(folder: Path, name: str, content: bytes) -> None:
    """Replace a file of the folder, and its size and digest in the manifest."""
    place = folder / "manifest.json"
    manifest = json.loads(place.read_text("utf-8"))
    entry = manifest["files"][name]
    (folder / entry["file"]).write_bytes(content)
    entry |= {"bytes": len(content), "sha256": sha256(content).hexdigest()}
    place.write_text(json.dumps(manifest), "utf-8")


def array_of(
    header: str, content: bytes = b"", magic: bytes = b"\x93NUMPY\x01\x00"
) -> bytes:
    """An ``.npy`` file with any header."""
    text = header.ljust(116).encode() + b"\n"
    return magic + len(text).to_bytes(2, "little") + text + content


ENTRY = {"file": "0123456789ab.documents.jsonl"}


def manifest_of(files: dict[str, Any]) -> bytes:
    head = {"kind": "spscanner-rag corpus", "format": 1, "framework": "ours"}
    return json.dumps(head | {"files": files}).encode()


DEEP = b"[" * 100_000 + b"]" * 100_000
SHAPE = "{'descr': '<i8', 'fortran_order': False, 'shape': %s, }"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("documents.jsonl", b'{"a": ' + DEEP + b"}\n"),
        ("documents.jsonl", b"[1, 2]\n"),
        ("documents.jsonl", b"7" * 5_000),
        ("stops", array_of(SHAPE % "(4611686018427387904, 4)")),
        ("stops", array_of(SHAPE % "(-1,)")),
        ("stops", array_of(SHAPE % "(True,)", bytes(8))),
        ("stops", array_of(SHAPE % ("(" * 60))),
        (
            "stops",
            array_of(
                "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", bytes(8)
            ),
        ),
        ("stops", array_of(SHAPE % "(1,)", bytes(8), b"\x93NUMPY\x09\x00")),
        ("stops", pickle.dumps(Exception)),
        ("stops", b"PK\x03\x04" + bytes(40)),
        ("keys", array_of(SHAPE.replace("<i8", "|u1") % f"({len(DEEP)},)", DEEP)),
        ("keys", array_of(SHAPE % "(1,)", bytes(8))),
        ("vocabulary", array_of(SHAPE % "()", bytes(8))),
        ("times", array_of(SHAPE.replace("<i8", "<M8[s]") % "(1,)", bytes(8))),
    ],
)
def test_a_forged_file_is_refused(folder: Path, name: str, content: bytes) -> None:
    forged(folder, name, content)
    with pytest.raises(ValueError, match=r"cannot be read|cannot be used"):
        read_corpus(folder, "ours")


@pytest.mark.parametrize(
    "content",
    [
        DEEP,
        b'{"kind": "spscanner-rag corpus", "format": 1e999}',
        b"\xff\xfe",
        b" " * 70_000 + b"{}",
        manifest_of({"documents.jsonl": {"file": 3}}),
        manifest_of({"documents.jsonl": ENTRY} | {f"{n}": ENTRY for n in range(100)}),
    ],
)
def test_a_forged_manifest_is_refused(folder: Path, content: bytes) -> None:
    (folder / "manifest.json").write_bytes(content)
    with pytest.raises(ValueError, match="manifest"):
        read_corpus(folder, "ours")


def test_arrays_that_do_not_fit_are_refused(folder: Path) -> None:
    place = folder / "manifest.json"
    manifest = json.loads(place.read_text("utf-8"))
    manifest["files"]["units"] = manifest["files"]["stops"]
    place.write_text(json.dumps(manifest), "utf-8")
    with pytest.raises(ValueError, match="has an index that cannot be used"):
        read_corpus(folder, "ours")


def test_a_foreign_folder_is_neither_read_nor_written(
    tmp_path: Path, corpus: HeldTexts
) -> None:
    with pytest.raises(
        ValueError, match=r"got no manifest\.json there; expected a folder that persist"
    ):
        read_corpus(tmp_path / "none", "ours")
    (tmp_path / "photo.jpg").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"other files, such as 'photo\.jpg'"):
        write_corpus(tmp_path, "ours", RECORDS, corpus)
    with pytest.raises(ValueError, match="got a file; expected a folder"):
        write_corpus(tmp_path / "photo.jpg", "ours", RECORDS, corpus)
    (tmp_path / "manifest.json").write_text('{"kind": "web app"}', "utf-8")
    with pytest.raises(ValueError, match="manifest of another program"):
        write_corpus(tmp_path, "ours", RECORDS, corpus)
    assert sorted(place.name for place in tmp_path.iterdir()) == [
        "manifest.json",
        "photo.jpg",
    ]


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
def test_what_json_cannot_keep(
    tmp_path: Path, corpus: HeldTexts, value: dict[str, Any], named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        check_json(value, "metadata", "d")
    with pytest.raises(ValueError, match="JSON cannot keep"):
        write_corpus(tmp_path / "new", "ours", [{"metadata": value}], corpus)
    assert not (tmp_path / "new").exists()
