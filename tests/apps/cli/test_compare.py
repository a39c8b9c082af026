"""`spscanner compare`, from its arguments to what it writes and its exit code."""

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spscanner_rag import Scanner
from spscanner_rag.apps.cli.compare import TOP_K
from spscanner_rag.baselines.bm25 import BM25
from spscanner_rag.text.token_counts import resolve_counter
from tests.apps.pages.checked_page import INVISIBLE, check_page, text_of

TEXT = (Path(__file__).parent / "treaty.txt").read_text(encoding="utf-8")
QUESTION = "Who signed the treaty?"
SIGNED = f"{TEXT.index('Anne')}-{TEXT.index('Anne') + 4}"
DRY = f"{TEXT.index('dry')}-{TEXT.index('dry') + 3}"


Run = Callable[..., Any]  # code, out, err


@pytest.fixture
def compare(run: Run, tiny_checkpoint: Path) -> Run:
    def compare(*arguments: object) -> Any:
        given = [str(argument) for argument in arguments]
        if "--retrievers" not in given:
            given += ["--retrievers", f"scanner:{tiny_checkpoint},bm25"]
        options = ["-q", QUESTION, "--dtype", "float32", "--device", "cpu"]
        return run("compare", *options, *given)

    return compare


def test_json_holds_the_picks_of_every_retriever(
    compare: Run, document: Path, tiny_checkpoint: Path, tiny_scanner: Scanner
) -> None:
    code, out, err = compare(document, "--top-k", 3, "--evidence", f"{SIGNED},{DRY}", "--format", "json")
    assert (code, err) == (0, "")
    assert out.isascii()
    answer = json.loads(out)
    assert (answer["query"], answer["counted_by"]) == (QUESTION, f"scanner:{tiny_checkpoint}")
    (entry,) = answer["documents"]
    assert (entry["path"], entry["characters"]) == (str(document), len(TEXT))
    assert [TEXT[start:end] for start, end in entry["evidence"]] == ["Anne", "dry"]
    assert [(each["line"], each["text"]) for each in entry["evidence_sentences"]] == [
        (1, "Anne signed the treaty, and the captain left."),
        (4, "Because the well was dry."),
    ]
    scanner, bm25 = entry["retrievers"]
    assert (scanner["name"], bm25["name"]) == (f"scanner:{tiny_checkpoint}", "bm25")
    for retrieval, scorer in ((scanner, tiny_scanner), (bm25, BM25())):
        units = scorer.segment(TEXT)
        logits = scorer.score_units(QUESTION, TEXT, units)
        best = sorted(range(len(units)), key=lambda i: -logits[i])[:3]
        assert [(pick["start"], pick["end"]) for pick in retrieval["picks"]] == [
            (units[i].start, units[i].end) for i in best
        ]
        assert [pick["rank"] for pick in retrieval["picks"]] == [1, 2, 3]
        for pick in retrieval["picks"]:
            assert pick["text"] == TEXT[pick["start"] : pick["end"]]
            assert pick["tokens"] == tiny_scanner.count_tokens(pick["text"])
        assert retrieval["tokens"] == sum(pick["tokens"] for pick in retrieval["picks"])
        picked = {pick["text"] for pick in retrieval["picks"]}
        assert retrieval["found"] == [each["text"] in picked for each in entry["evidence_sentences"]]
        assert retrieval["units"] == 9
        assert retrieval["seconds"] > 0
    spans = [{(pick["start"], pick["end"]) for pick in each["picks"]} for each in (scanner, bm25)]
    assert scanner["only"] == bm25["only"] == 3 - len(spans[0] & spans[1])


def test_sentences_beside_chunks(compare: Run, document: Path, tiny_checkpoint: Path) -> None:
    def shown(*options: str) -> list[tuple[str, int, int]]:
        (entry,) = json.loads(compare(document, "--format", "json", *options).out)["documents"]
        return [(each["name"], each["units"], len(each["picks"])) for each in entry["retrievers"]]

    scanner = f"scanner:{tiny_checkpoint}"
    assert shown("--unit", "sentence,chunk", "--top-k", "4,1") == [
        (scanner, 9, 4), ("bm25", 9, 4), ("bm25 (chunk)", 1, 1),
    ]  # fmt: skip
    whole = [(scanner, 9, min(9, TOP_K["sentence"])), ("bm25 (document)", 1, 1)]
    assert shown("--unit", "document") == whole


def test_the_ending_of_the_output_says_its_format(compare: Run, document: Path, tmp_path: Path) -> None:
    for name, start in (
        ("page.HTM", "<!doctype html>"),
        ("a.json", '{\n  "query"'),
        ("a.txt", str(document)),
    ):
        out = tmp_path / name
        assert compare(document, "--out", out) == (0, "", "")
        assert out.read_text(encoding="utf-8").startswith(start)
    assert compare(document, "--out", tmp_path / "b.txt", "--format", "html") == (0, "", "")
    assert (tmp_path / "b.txt").read_text(encoding="utf-8").count('<mark class="pick') == 18
    assert compare(document, "--format", "html").out.startswith("<!doctype html>")


def test_the_text_view_is_a_table(compare: Run, document: Path) -> None:
    out = compare(document, "--retrievers", "bm25,hybrid:bm25+bm25", "--top-k", 2, "--evidence", DRY).out
    lines = out.splitlines()
    assert lines[0].startswith(
        f"{document} {len(TEXT)} characters, tokens as counted by the bundled checkpoint"
    )
    assert re.match(r"bm25 +2 +9 +0 +0 of 1 +\d+ +\d\.\d{3}$", lines[2].strip())
    assert "│ 1 │ 0." in out
    assert "Anne signed the treaty, and the captain left." in out
    assert "evidence 4:32  missed by bm25, hybrid:bm25+bm25\n  Because the well was dry." in out


def test_several_documents(
    compare: Run, document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("Ωμέγα signed.".encode())))
    answer = json.loads(compare(document, "-", "--format", "json").out)
    assert [entry["path"] for entry in answer["documents"]] == [str(document), "-"]
    assert answer["documents"][1]["retrievers"][1]["picks"][0]["text"] == "Ωμέγα signed."
    page = compare(document, document, "--format", "html").out
    assert page.count('<section class="comparison n2"') == 2


def test_each_retriever_has_one_ranking_over_all_documents(
    compare: Run, document: Path, tmp_path: Path
) -> None:
    (tmp_path / "b.md").write_text(
        "# Peace\n\nAnne signed the treaty in May.\n\nIt rained.\n", encoding="utf-8"
    )
    (tmp_path / "c.txt").write_text("Nothing.", encoding="utf-8")
    answer = json.loads(compare(tmp_path, "--top-k", 3, "--format", "json").out)
    assert [Path(entry["path"]).name for entry in answer["documents"]] == ["b.md", "c.txt", "treaty.txt"]
    for number in range(2):
        picks = [pick for entry in answer["documents"] for pick in entry["retrievers"][number]["picks"]]
        assert sorted(pick["rank"] for pick in picks) == [1, 2, 3]
        by_rank = sorted(picks, key=lambda pick: pick["rank"])
        assert [pick["score"] for pick in by_rank] == sorted((pick["score"] for pick in picks), reverse=True)
    (best,) = [pick for pick in answer["documents"][0]["retrievers"][1]["picks"] if "May" in pick["text"]]
    assert best["headings"] == ["Peace"]
    table = compare(tmp_path, "--top-k", 3, "--retrievers", "bm25").out
    assert "3:1  Peace" in table
    assert "No pick in 1 of 3 documents." in table
    page = compare(tmp_path, "--top-k", 3, "--format", "html").out
    assert not re.search(r'height="-', page)


def test_tokens_are_counted_as_asked_for(compare: Run, document: Path) -> None:
    pytest.importorskip("llama_index.core", reason="tiktoken's table comes with llama-index-core")
    out = compare(document, "--format", "json", "--count-tokens", "o200k_base").out
    answer = json.loads(out)
    assert answer["counted_by"] == "o200k_base"
    counts = {pick["text"]: pick["tokens"] for pick in answer["documents"][0]["retrievers"][1]["picks"]}
    count = resolve_counter("o200k_base")
    assert counts == {text: count(text) for text in counts}
    assert len(set(counts.values())) > 1


def test_bad_files_are_found_before_a_model_is_loaded(
    compare: Run, document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(Scanner, "from_pretrained")
    named = ["--retrievers", "scanner:other"]
    (tmp_path / "empty.txt").touch()
    assert "got an empty file" in compare(tmp_path / "empty.txt", *named).err
    assert "got a document to scan" in compare(document, "--out", document, *named).err
    assert "got 2 documents; expected one" in compare(document, document, "--evidence", DRY, *named).err
    assert compare(document, "--evidence", "0-9999", *named).code == 2
    assert "does not exist" in compare(document, "--retrievers", "scanner:other,nope").err
    with pytest.raises(AttributeError, match="from_pretrained"):
        compare(document, *named)


@pytest.mark.parametrize(("name", "module"), [("bm25", "bm25s"), ("dense", "sentence_transformers")])
def test_a_missing_extra_names_the_line_that_installs_it(
    compare: Run, document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    code, out, err = compare(document, "--retrievers", name, "--out", tmp_path / "out.html")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert 'pip install "spscanner-rag[baselines]"' in err
    assert not (tmp_path / "out.html").exists()


def test_a_retriever_that_fails_leaves_nothing(
    compare: Run, document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: Any) -> None:
        raise ValueError("the embedder returned NaN for the text 'x'")

    monkeypatch.setattr(BM25, "raw_scores", broken)
    code, out, err = compare(document, "--out", tmp_path / "out.html")
    assert (code, out, err) == (2, "", "spscanner: the embedder returned NaN for the text 'x'\n")
    assert [path.name for path in tmp_path.iterdir()] == ["treaty.txt"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-q", " \n"], "--query: got ' \\n'; expected a question"),
        (["--retrievers", "bm25,nope"], "retriever 'nope' does not exist; expected one of: scanner or"),
        (["--retrievers", "bm25,"], "--retrievers: got 'bm25,'; expected names separated by commas"),
        (["--retrievers", "bm25,bm25"], "a name twice"),
        (["--retrievers", "crossencoder"], "needs a model name; expected crossencoder:MODEL"),
        (["--retrievers", "scanner:./absent"], "./absent: no such folder"),
        (["--unit", "word"], "unit is 'word'; expected one of sentence, chunk, passage, document"),
        (["--unit", "chunk,chunk"], "a name twice"),
        (["--top-k", "501"], "top_k: got 501; expected a whole number from 1 to 500"),
        (["--top-k", "1.5"], "--top-k: got '1.5'; expected one whole number, or one for each of sentence"),
        (["--top-k", "1,2"], "--top-k: got '1,2'"),
        (["--evidence", "5"], "--evidence: got '5'; expected START-END"),
        (["--evidence", "1-5,"], "--evidence: got ''"),
        (["--evidence", "0-9999"], f"got 0-9999; expected START-END with 0 <= START < END <= {len(TEXT)}"),
        (["--count-tokens", "nope"], "use one of"),
        (["--format", "csv"], "--format: got csv; expected text, json or html"),
        (["--out", "no-such-folder/a.html"], "there is no folder no-such-folder"),
        (
            ["--unit", "sentence,chunk,passage,document", "--retrievers", "bm25,hybrid:bm25+bm25,scanner"],
            "got 9",
        ),
    ],
)
def test_bad_options_are_one_line_and_exit_code_2(
    compare: Run, document: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    out = [] if "--out" in options else ["--out", str(tmp_path / "out.html")]
    code, shown, err = compare(document, *options, *out)
    assert (code, shown) == (2, "")
    assert err.startswith("spscanner: ")
    assert err.count("\n") == 1
    assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["treaty.txt"]


@pytest.mark.parametrize("command", ["scan", "compare"])
@pytest.mark.parametrize("form", ["text", "json", "html"])
def test_a_hostile_document_and_question_stay_text(
    run: Run, checkpoint: Path, hostile_document: Path, command: str, form: str
) -> None:
    text = hostile_document.read_bytes().decode()
    question = f"{text} \udcff"  # as an argument that is no UTF-8
    own = ["--model", checkpoint] if command == "scan" else ["--retrievers", "bm25", "--evidence", "5-12"]
    code, out, err = run(command, hostile_document, "-q", question, "--format", form, "--progress", *own)
    assert code == 0
    for shown in (out, re.sub(r"\x1b\[[\d;]*[A-Za-z]", "", err)):
        assert not INVISIBLE.search(shown)
    assert "/1" in err or "tokens" in err
    assert "[red]" in out
    if form == "json":
        assert json.loads(out)["query"] == question
        (answer,) = json.loads(out)["documents"]
        for pick in answer.get("passages") or answer["retrievers"][0]["picks"]:
            assert pick["text"] == text[pick["start"] : pick["end"]]
        return
    joined = re.sub(r"[\s│]+", "", re.sub("</?(code|span)[^>]*>", "", out))
    assert r"\x1b]8;;http://x.example\x1b" in joined
    assert "[/INST]signed[bold]the[/bold]treaty:smile:" in joined
    if form == "html":
        assert "<script>alert(1)</script>" in text_of(check_page(out).root)
