"""`spscanner compare`, from its arguments to its output and exit code."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from spscanner_rag import Scanner
from spscanner_rag.apps.cli.compare import TOP_K
from spscanner_rag.apps.compare.comparison import compare_together, described
from spscanner_rag.baselines.bm25 import BM25
from spscanner_rag.files.documents import TextFile
from spscanner_rag.system.strict_json import json_text
from tests.command_line import Run

TEXT = (Path(__file__).parents[2] / "data" / "documents" / "treaty.txt").read_text(
    encoding="utf-8"
)
QUESTION = "Who signed the treaty?"
SIGNED = f"{TEXT.index('Anne')}-{TEXT.index('Anne') + 4}"
DRY = f"{TEXT.index('dry')}-{TEXT.index('dry') + 3}"


@pytest.fixture
def compare(run: Run, tiny_checkpoint: Path) -> Run:
    def compare(*arguments: object) -> Any:
        given = [str(argument) for argument in arguments]
        if "--retrievers" not in given:
            given += ["--retrievers", f"scanner:{tiny_checkpoint},bm25"]
        options = ["-q", QUESTION, "--dtype", "float32", "--device", "cpu"]
        return run("compare", *options, *given)

    return compare


def test_as_the_library(
    compare: Run, document: Path, tiny_checkpoint: Path, tiny_scanner: Scanner
) -> None:
    options = ("--top-k", 3, "--format", "json", "--count-tokens", "o200k_base")
    code, out, err = compare(document, "--evidence", f"{SIGNED},{DRY}", *options)
    assert (code, err) == (0, "")
    assert out.isascii()
    found = compare_together(
        QUESTION,
        [TextFile(str(document), TEXT)],
        {f"scanner:{tiny_checkpoint}": tiny_scanner, "bm25": BM25()},
        top_k=3,
        evidence=[tuple(map(int, span.split("-"))) for span in (SIGNED, DRY)],  # type: ignore[misc]
        count_tokens="o200k_base",
    )
    answer, expected = json.loads(out), json.loads(json_text(described(found)))
    for retrieval in (
        answer["documents"][0]["retrievers"] + expected["documents"][0]["retrievers"]
    ):
        assert retrieval.pop("seconds") > 0 < retrieval.pop("seconds_again")
        for pick in retrieval["picks"]:
            assert pick["text"] == TEXT[pick["start"] : pick["end"]]
            pick["score"] = pytest.approx(pick["score"], abs=1e-5)
    assert answer == expected


def test_sentences_beside_chunks(
    compare: Run, document: Path, tiny_checkpoint: Path
) -> None:
    def shown(*options: str) -> list[tuple[str, int, int]]:
        (entry,) = json.loads(compare(document, "--format", "json", *options).out)[
            "documents"
        ]
        return [
            (each["name"], each["units"], len(each["picks"]))
            for each in entry["retrievers"]
        ]

    scanner = f"scanner:{tiny_checkpoint}"
    assert shown("--unit", "sentence,chunk", "--top-k", "4,1") == [
        (scanner, 9, 4), ("bm25", 9, 4), ("bm25 (chunk)", 1, 1),
    ]  # fmt: skip
    whole = [(scanner, 9, min(9, TOP_K["sentence"])), ("bm25 (document)", 1, 1)]
    assert shown("--unit", "document") == whole
    assert shown("--unit", "chunk:900")[1] == ("bm25 (chunk:900)", 1, TOP_K["chunk"])


def test_each_retriever_has_one_ranking_over_all(
    compare: Run, document: Path, tmp_path: Path
) -> None:
    (tmp_path / "b.md").write_text(
        "# Peace\n\nAnne signed the treaty in May.\n\nIt rained.\n", encoding="utf-8"
    )
    (tmp_path / "c.txt").write_text("Nothing.", encoding="utf-8")
    answer = json.loads(compare(tmp_path, "--top-k", 3, "--format", "json").out)
    assert [Path(entry["path"]).name for entry in answer["documents"]] == [
        "b.md",
        "c.txt",
        "treaty.txt",
    ]
    for number in range(2):
        picks = [
            pick
            for entry in answer["documents"]
            for pick in entry["retrievers"][number]["picks"]
        ]
        assert sorted(pick["rank"] for pick in picks) == [1, 2, 3]
        by_rank = sorted(picks, key=lambda pick: pick["rank"])
        assert [pick["score"] for pick in by_rank] == sorted(
            (pick["score"] for pick in picks), reverse=True
        )
    (best,) = [
        pick
        for pick in answer["documents"][0]["retrievers"][1]["picks"]
        if "May" in pick["text"]
    ]
    assert best["headings"] == ["Peace"]
    table = compare(tmp_path, "--top-k", 3, "--retrievers", "bm25").out
    assert "3:1 · Peace" in table
    assert "No pick in 1 of 3 documents." in table
    page = compare(tmp_path, "--top-k", 3, "--format", "html").out
    assert not re.search(r'height="-', page)


def test_bad_files_are_found_before_a_model_is_loaded(
    compare: Run, document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(Scanner, "from_pretrained")
    named = ["--retrievers", "scanner:other"]
    (tmp_path / "empty.txt").touch()
    assert "got an empty file" in compare(tmp_path / "empty.txt", *named).err
    assert "got a document to scan" in compare(document, "--out", document, *named).err
    assert (
        "got 2 documents; expected one"
        in compare(document, document, "--evidence", DRY, *named).err
    )
    assert compare(document, "--evidence", "0-9999", *named).code == 2
    assert (
        "does not exist" in compare(document, "--retrievers", "scanner:other,nope").err
    )
    with pytest.raises(AttributeError, match="from_pretrained"):
        compare(document, *named)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-q", " \n"], "--query: got ' \\n'; expected a question"),
        (
            ["--retrievers", "bm25,"],
            "--retrievers: got 'bm25,'; expected names separated by commas",
        ),
        (["--retrievers", "bm25:x"], "got the retriever 'bm25:x'; expected bm25"),
        (
            ["--retrievers", "crossencoder"],
            "got the retriever 'crossencoder'; expected crossencoder:MODEL",
        ),
        (["--retrievers", "scanner:./absent"], "./absent: no such folder"),
        (
            ["--unit", "word"],
            "unit is 'word'; expected one of sentence, chunk, passage, document",
        ),
        (["--unit", "chunk,chunk"], "a name twice"),
        (
            ["--top-k", "1.5"],
            (
                "--top-k: got '1.5'; expected one whole number, or one for each of"
                " sentence"
            ),
        ),
        (["--evidence", "5"], "--evidence: got '5'; expected START-END"),
        (["--format", "csv"], "--format: got csv; expected text, json or html"),
    ],
)
def test_bad_options_are_one_line_and_exit_code_2(
    compare: Run, document: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    compare(document, *options, "--out", tmp_path / "out.html").refuses(message)
    assert [path.name for path in tmp_path.iterdir()] == ["treaty.txt"]
