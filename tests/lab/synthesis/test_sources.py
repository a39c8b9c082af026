"""Documents of files, folders and both frameworks."""

import gzip
import json
import os
from pathlib import Path

import pytest
from langchain_core.documents import Document as LangChainDocument
from llama_index.core.schema import Document as LlamaIndexDocument

from spscanner_lab.evidence.data_lines import DataError
from spscanner_lab.synthesis.sources import (
    framework_documents,
    read_sources,
    source_files,
)


def test_files_folders_and_bad_lines(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"text": "One.", "id": "x"}\n\n{"text": "Two.", "title": "T"}\n'
    )
    (tmp_path / "b.txt").write_text("Three.\n\x1e\nFour.\n")
    (tmp_path / "c.md").write_text("# Five\n")
    with gzip.open(tmp_path / "d.jsonl.gz", "wt") as file:
        file.write(json.dumps({"text": "Six.", "source": "six"}) + "\n")
    found = list(read_sources(source_files([tmp_path])))
    assert [each.text.strip() for each in found] == [
        "One.",
        "Two.",
        "Three.",
        "Four.",
        "# Five",
        "Six.",
    ]
    assert (found[0].doc_id, found[1].title, found[5].source) == ("x", "T", "six")
    (tmp_path / "e.jsonl").write_text('{"text": "One."}\n{"words": 3}\n')
    with pytest.raises(
        DataError, match=r"e\.jsonl, line 2: expected a JSON object with a document"
    ):
        list(read_sources([tmp_path / "e.jsonl"]))
    assert [(each.doc_id, each.source) for each in found[2:5:2]] == [
        ("b-1", "b"),
        ("c.md", "c.md"),
    ]
    (tmp_path / "f.txt").write_bytes(b"One.\n\xff")
    with pytest.raises(DataError, match=r"f\.txt, line 2: expected UTF-8"):
        list(read_sources([tmp_path / "f.txt"]))
    with pytest.raises(ValueError, match="no such file"):
        source_files([tmp_path / "absent"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="folder without text"):
        source_files([tmp_path / "empty"])


def test_documents_of_both_frameworks() -> None:
    documents = [
        LlamaIndexDocument(
            text="One.", id_="a", metadata={"title": "T", "secret": "s"}
        ),
        LangChainDocument("Two.", metadata={"source": "b.pdf"}),
    ]
    found = [
        (each.doc_id, each.text, each.title) for each in framework_documents(documents)
    ]
    assert found == [("a", "One.", "T"), ("b.pdf", "Two.", "")]
    with pytest.raises(TypeError, match="document 1 is int"):
        list(framework_documents([3]))


def test_sources_are_called_by_their_files(tmp_path: Path) -> None:
    lines, novels = tmp_path / "squad11" / "train.jsonl", tmp_path / "novels-000.txt"
    odd = tmp_path / os.fsdecode(b"caf\xe9.txt")
    lines.parent.mkdir()
    lines.write_text('{"text": "One."}\n')
    novels.write_text("Two.\n")
    odd.write_text("Three.\n")
    found = [each.source for each in read_sources([lines, novels, odd])]
    assert found == [
        "squad11/train",
        "novels-000",
        r"caf\udce9",
    ]  # results can hold this name
