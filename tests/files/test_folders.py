"""Folders: what is read, and how what is left out is reported."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from spscanner_rag.files.folders import read_all


def test_a_folder_is_read_and_what_is_left_out_is_told(
    tmp_path: Path, pdf_of: Callable[..., bytes]
) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / ".hidden").mkdir()
    for name, data in (
        ("b.txt", b"B."), ("a.md", b"A."),
        ("inner/c.pdf", pdf_of([["C."], [], []])), ("inner/d.html", b"<p>D."),
        ("broken.pdf", b"%PDF-1.7 and no more"), ("empty.txt", b""),
        ("x.png", b""), ("y.css", b""),
        ("LICENSE", b""),         (".hidden/h.txt", b"H."), (".h.txt", b"H."),
    ):  # fmt: skip
        (tmp_path / name).write_bytes(data)
    told: list[str] = []
    documents = read_all([str(tmp_path), str(tmp_path / "b.txt")], told.append)
    names = [os.path.relpath(document.path, tmp_path) for document in documents]
    assert names == [
        "a.md",
        "b.txt",
        *(os.path.join("inner", name) for name in ("c.pdf", "d.html")),
        "b.txt",
    ]
    assert len(told) == 4
    assert told[0].startswith(
        f"left out: {tmp_path / 'broken.pdf'}: got a PDF that cannot be read"
    )
    assert told[1].startswith(f"left out: {tmp_path / 'empty.txt'}: got an empty file")
    assert (
        told[2] == f"{tmp_path}: left out 3 files with other endings (.css, .png, none)"
    )
    assert told[3].endswith(
        "c.pdf: 2 of 3 pages have no text; scanned pages need OCR, such as"
        " `--ocr eng` for English ones"
    )
    with pytest.raises(
        ValueError, match="broken"
    ):  # a file given by name is not left out
        read_all([str(tmp_path / "broken.pdf"), str(tmp_path)], told.append)


def test_a_folder_without_documents_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"in which nothing can be read: no file in it ends in \.txt, "
    ):
        read_all([str(tmp_path)], print)
    (tmp_path / "a.txt").touch()
    (tmp_path / "b.txt").touch()
    with pytest.raises(
        ValueError,
        match=r"nothing can be read: .*a\.txt: got an empty file.* \(and 1 more\)$",
    ):
        read_all([str(tmp_path)], print)


def test_linked_folders_are_named_and_not_followed(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("The keeper signed it.")
    (inside / "archive").symlink_to(outside)
    with pytest.raises(ValueError, match="links to folders are not followed"):
        read_all([str(inside)], print)
    (inside / "b.txt").write_text("It rained.")
    (inside / "loop").symlink_to(inside)
    notes: list[str] = []
    (document,) = read_all([str(inside)], notes.append)
    assert document.text == "It rained."
    (note,) = notes
    assert "left out 2 linked folders" in note
    assert "archive" in note
    assert "loop" in note
