"""Which outputs are refused: what is read is never replaced, under whatever name."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spscanner_rag.system.outputs import check_outputs, check_results_folder


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "in" / "document.txt"
    path.parent.mkdir()
    path.write_text("text")
    return path


def link(document: Path) -> Path:
    path = document.with_name("link.txt")
    path.symlink_to(document)
    return path


def hard_link(document: Path) -> Path:
    path = document.with_name("hard.txt")
    os.link(document, path)
    return path


def link_to_link(document: Path) -> Path:
    path = document.with_name("second.txt")
    path.symlink_to(link(document))
    return path


def through_linked_folder(document: Path) -> Path:
    folder = document.parents[1] / "linked"
    folder.symlink_to(document.parent)
    return folder / document.name


def with_dots(document: Path) -> Path:
    return document.parent / ".." / document.parent.name / document.name


def relative(document: Path) -> Path:
    return Path(os.path.relpath(document))


@pytest.mark.parametrize(
    "other_name",
    [Path, link, hard_link, link_to_link, through_linked_folder, with_dots, relative],
)
@pytest.mark.parametrize("option", ["--out", "--text-out"])
def test_a_document_has_many_names(
    other_name: Callable[[Path], Path], option: str, document: Path
) -> None:
    output = other_name(document)
    with pytest.raises(ValueError, match=rf"{option} .*: got a document to scan; expe"):
        check_outputs({option: output}, ["-", str(document)])
    with pytest.raises(ValueError, match="got a file that is read; expected another"):
        check_outputs({option: output}, [], [document.parent])


def test_standard_input_may_be_a_file(document: Path) -> None:
    stdin = os.dup(0)
    descriptor = os.open(document, os.O_RDONLY)
    try:
        os.dup2(descriptor, 0)
        with pytest.raises(ValueError, match="got a document to scan"):
            check_outputs({"--out": document}, ["-"])
    finally:
        os.dup2(stdin, 0)
        os.close(stdin)
        os.close(descriptor)


def test_other_files_and_devices_may_be_written(document: Path, tmp_path: Path) -> None:
    dangling = tmp_path / "dangling.html"
    dangling.symlink_to(tmp_path / "new.html")
    null = Path(os.devnull)
    for output in (None, tmp_path / "new.html", dangling, null):
        check_outputs({"--out": output}, [document, null, "\0", "absent.txt"])
    check_outputs({"--out": null, "--text-out": null}, [document])


def same(folder: Path) -> tuple[Path, Path]:
    return folder / "r.txt", folder / "r.txt"


def new_and_dots(folder: Path) -> tuple[Path, Path]:
    return folder / "r.txt", folder / "in" / ".." / "r.txt"


def new_and_dangling_link(folder: Path) -> tuple[Path, Path]:
    (folder / "link.txt").symlink_to(folder / "r.txt")
    return folder / "r.txt", folder / "link.txt"


def two_hard_links(folder: Path) -> tuple[Path, Path]:
    (folder / "r.txt").touch()
    os.link(folder / "r.txt", folder / "s.txt")
    return folder / "r.txt", folder / "s.txt"


@pytest.mark.parametrize(
    "outputs_of", [same, new_and_dots, new_and_dangling_link, two_hard_links]
)
def test_one_file_for_two_outputs_is_refused(
    outputs_of: Callable[[Path], tuple[Path, Path]], document: Path
) -> None:
    out, text_out = outputs_of(document.parents[1])
    with pytest.raises(ValueError, match="got the file of --out; expected another"):
        check_outputs({"--out": out, "--text-out": text_out}, [document])


def test_places_where_nothing_can_be_written(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere.txt"
    nowhere.symlink_to(tmp_path / "absent" / "x.txt")
    circle = tmp_path / "circle.txt"
    circle.symlink_to(circle)
    for output, message in {
        tmp_path: "got a folder; expected a file",
        tmp_path / "absent" / "out.html": "there is no folder .*absent; expected one",
        nowhere: "got a link to .*x.txt, and there is no folder .*absent; expected",
        circle: "got links that lead in a circle; expected a file: remove them",
    }.items():
        with pytest.raises(ValueError, match=message):
            check_outputs({"--out": output}, [])


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0, reason="root may write anywhere"
)
def test_a_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ValueError, match="no permission to write; expected a writable"):
        check_outputs({"--out": tmp_path / "out.html"}, [])


def test_results_do_not_replace_what_is_read(document: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    check_results_folder(out, ["test.jsonl"], [document])  # it does not exist yet
    out.mkdir()
    (out / "test.jsonl").symlink_to(document)
    with pytest.raises(ValueError, match=r"got a folder whose test\.jsonl is read and"):
        check_results_folder(out, ["test.jsonl"], [document])
    with pytest.raises(ValueError, match=r"whose test\.jsonl is read"):
        check_results_folder(out, ["t*.jsonl"], [document.parent])
    check_results_folder(out, ["train.jsonl", "*.json"], [document])
    check_results_folder(out, ["test.jsonl"], [tmp_path / "absent"])
