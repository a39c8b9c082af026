"""Files that an agent may read, by the names that it writes."""

import unicodedata
from pathlib import Path

import pytest

from spscanner_rag.apps.mcp.readable_files import ReadableFiles, spelled_as_stored
from spscanner_rag.files.reading import read_bytes


def test_a_decomposed_name_is_found_by_its_composed_form(tmp_path: Path) -> None:
    folder = tmp_path / unicodedata.normalize("NFD", "Café")
    folder.mkdir()
    (folder / unicodedata.normalize("NFD", "Müller.txt")).write_text("It rained.")
    files = ReadableFiles([tmp_path], read_bytes)
    assert files.document("Café/Müller.txt").text == "It rained."
    with pytest.raises(ValueError, match="no such file"):
        files.document("../Café/Müller.txt")
    assert spelled_as_stored(tmp_path, "plain.txt") == "plain.txt"
