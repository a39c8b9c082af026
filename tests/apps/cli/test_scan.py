"""`spscanner scan`, from its arguments to its output and exit code."""

import csv
import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spscanner_rag import Scanner
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.scan import reading
from spscanner_rag.text.segmentation import SentenceSegmenter
from tests.command_line import Run

TEXT = (Path(__file__).parents[2] / "data" / "documents" / "treaty.txt").read_text(
    encoding="utf-8"
)
QUESTION = "Who signed the treaty?"


def test_the_best_sentence_comes_first(scan: Run, document: Path) -> None:
    code, out, err = scan(document, "--top-k", 2)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == f"{document} {len(TEXT)} characters, 9 sentences"
    assert lines[2:6] == [
        "1:58",
        "            The keeper of the lighthouse wrote the date in his book.",
        f"  1  {lines[4][5:10]}  Anne signed the treaty, and the captain left.",
        "            Nobody answered her question.",
    ]


def test_json_says_the_same_as_the_library(
    scan: Run, document: Path, checkpoint: Path
) -> None:
    code, out, err = scan(document, "--format", "json", "--top-k", 3, "--context", 1)
    assert (code, err) == (0, "")
    answer = json.loads(out)
    result = Scanner.from_pretrained(checkpoint, dtype="float32").scan(QUESTION, TEXT)
    best = [passage.start for passage in result.select(top_k=3, order="score")]
    logits = {sentence.start: sentence.logit for sentence in result.sentences}
    expected = [
        {
            "start": passage.start,
            "end": passage.end,
            "line": TEXT.count("\n", 0, passage.start) + 1,
            "column": passage.start - TEXT.rfind("\n", 0, passage.start),
            "rank": best.index(passage.start) + 1 if passage.start in best else None,
            "score": pytest.approx(passage.score, abs=1e-6),
            "logit": pytest.approx(logits[passage.start], abs=1e-5),
            "neighbour": passage.start not in best,
            "text": TEXT[passage.start : passage.end],
        }
        for passage in result.select(top_k=3, context=1, order="score")
    ]
    of_document = {
        "path": str(document),
        "characters": len(TEXT),
        "sentences": 9,
        "answerable": None,
    }
    of_document["passages"] = expected
    assert answer == {
        "query": QUESTION,
        "model": str(checkpoint),
        "documents": [of_document],
    }


def test_options_reach_the_selection(scan: Run, document: Path) -> None:
    def texts(*options: object) -> list[str]:
        out = scan(document, "--format", "json", *options).out
        return [
            passage["text"] for passage in json.loads(out)["documents"][0]["passages"]
        ]

    everything = texts("--top-k", "all", "--order", "document")
    assert len(everything) == 9
    assert everything[0].startswith("The keeper")
    assert everything[-1] == "Then the rain began."
    assert texts("--top-k", "0.5") == texts(
        "--top-k", "all"
    )  # a share selects at least ten sentences
    assert texts("--threshold", 1) == []
    assert texts("--threshold", 0, "--top-k", 4) == texts("--top-k", 4)
    within = texts("--top-k", "all", "--max-tokens", 30, "--count-tokens", "o200k_base")
    assert 0 < len(within) < 9
    assert within[0] == "Anne signed the treaty, and the captain left."
    assert texts("--top-k", "all", "--segment-tokens", 7) == texts("--top-k", "all")


def test_files_and_standard_input_are_documents_of_their_own(
    scan: Run, document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.txt"
    other.write_bytes(b"\xef\xbb\xbfNo treaty here.\r\nNobody signed.\r\n")
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO("Ωμέγα signed.".encode()))
    )
    out = scan(document, other, "-", "--format", "json").out
    assert out.isascii()  # whatever the terminal and the document
    answer = json.loads(out)
    paths = [
        (entry["path"], entry["characters"], entry["sentences"])
        for entry in answer["documents"]
    ]
    assert paths == [(str(document), len(TEXT), 9), (str(other), 33, 2), ("-", 13, 1)]
    first = min(
        answer["documents"][1]["passages"], key=lambda passage: passage["start"]
    )
    assert (first["start"], first["line"], first["column"]) == (0, 1, 1)
    assert answer["documents"][2]["passages"][0]["text"] == "Ωμέγα signed."
    text = scan(document, other).out
    assert f"\n\n{other} 33 characters, 2 sentences\n" in text


def test_the_ending_of_the_output_says_its_form(
    scan: Run, document: Path, tmp_path: Path
) -> None:
    for name, start in (
        ("o.txt", str(document)),
        ("o.json", '{\n  "query"'),
        ("o.HTM", "<!doctype html>"),
        ("o.md", "# Who signed the treaty?\n\n## "),
        (
            "o.csv",
            "rank,score,logit,path,page,place,headings,line,column,start,end,neighbour,"
            "text\n1,0.",
        ),
    ):
        assert scan(document, "--out", tmp_path / name) == (0, "", "")
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)
    with (tmp_path / "o.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    answer = json.loads((tmp_path / "o.json").read_text())["documents"][0]["passages"]
    assert [(row["rank"], row["text"]) for row in rows] == [
        (str(passage["rank"]), passage["text"].replace("\n", " ")) for passage in answer
    ]
    page = (tmp_path / "o.HTM").read_text(encoding="utf-8")
    assert scan(document, "--out", tmp_path / "o.txt", "--format", "html").code == 0
    assert (
        page
        == (tmp_path / "o.txt").read_text(encoding="utf-8")
        == scan(document, "--format", "html").out
    )


def test_one_ranking_over_the_files_of_a_folder(scan: Run, tmp_path: Path) -> None:
    folder = tmp_path / "book"
    folder.mkdir()
    (folder / "a.md").write_text(
        "# Weather\n\nIt rained. The well was dry.\n", encoding="utf-8"
    )
    (folder / "b.md").write_text(
        "# Peace\n\n## Signing\n\nAnne signed the treaty.\n", encoding="utf-8"
    )
    (folder / "c.txt").write_text(
        "Nobody came. The treaty was signed in May.", encoding="utf-8"
    )
    (folder / "broken.txt").write_bytes(b"\xff")
    code, out, err = scan(folder, "--top-k", 2, "--format", "json")
    assert code == 0
    assert err.startswith(
        f"spscanner: left out: {folder / 'broken.txt'}: got byte 0xff at 0, not UTF-8"
    )
    assert err.count("\n") == 1
    documents = json.loads(out)["documents"]
    assert [Path(entry["path"]).name for entry in documents] == [
        "a.md",
        "b.md",
        "c.txt",
    ]
    picks = [
        (entry["path"][-4:], each["rank"])
        for entry in documents
        for each in entry["passages"]
    ]
    assert sorted(rank for _, rank in picks) == [1, 2]
    assert {name for name, _ in picks} == {"b.md", ".txt"}
    (pick,) = documents[1]["passages"]
    assert pick["headings"] == ["Peace", "Signing"]
    assert pick["text"] == "Anne signed the treaty."
    shown = scan(folder, "--top-k", 2).out
    assert "No sentence was selected in 1 of 3 documents." in shown
    first = min(picks, key=lambda pick: pick[1])[0]
    assert (
        shown.splitlines()[0].split()[0].endswith(first)
    )  # the document with the best sentence
    assert "\n5:1 · Signing\n" in shown
    listed = scan(folder, "--top-k", 2, "--format", "markdown").out
    assert "Signing, 5:1: Anne signed the treaty." in listed


def test_pages_of_a_pdf(
    scan: Run, tmp_path: Path, pdf_of: Callable[..., bytes]
) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf_of([["It rained."], ["Anne signed the treaty."]]))
    assert "\npage 2\n" in scan(path, "--top-k", 1).out
    out = tmp_path / "text.txt"
    (found,) = json.loads(
        scan(path, "--top-k", 1, "--format", "json", "--text-out", out).out
    )["documents"]
    (passage,) = found["passages"]
    assert (passage["page"], passage["page_number"]) == ("2", 2)
    assert (
        out.read_text(encoding="utf-8")[passage["start"] : passage["end"]]
        == "Anne signed the treaty."
    )


def test_html_is_always_utf8(
    scan: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "omega.txt").write_text("Ωμέγα signed the treaty.", encoding="utf-8")
    for output_format, shown in (
        ("html", "Ωμέγα signed"),
        ("text", "\\u03b3\\u03b1 signed"),
    ):
        stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        monkeypatch.setattr(sys, "stdout", stream)
        assert scan(tmp_path / "omega.txt", "--format", output_format).code == 0
        assert shown in stream.buffer.getvalue().decode()
        monkeypatch.undo()


def test_progress_when_asked_for(
    scan: Run, document: Path, pdf: Path, checkpoint: Path
) -> None:
    tokens = len(
        Scanner.from_pretrained(checkpoint).reading.index_text(TEXT, None).input_ids
    )
    shown = " ".join(scan(document, document, "--progress").err.split())
    assert re.search(f"scanning 2 documents .* {2 * tokens}/{2 * tokens} tokens", shown)
    assert " 2/2 pages" in " ".join(scan(pdf, "--progress", "--no-cache").err.split())
    assert scan(document, "--no-progress").err == ""
    assert scan(document).err == ""  # standard error is not a terminal here


@pytest.mark.slow
@pytest.mark.parametrize(
    ("measured", "worth", "said"), [(0.0, 0.0, 1), (0.0, 1e6, 0), (1e6, 0.0, 0)]
)
def test_the_first_question_says_what_it_reads_and_how_long(
    run: Run,
    document: Path,
    monkeypatch: pytest.MonkeyPatch,
    measured: float,
    worth: float,
    said: int,
) -> None:
    monkeypatch.setattr(
        "spscanner_rag.apps.cli.prepared_files.MEASURED_SECONDS", measured
    )
    monkeypatch.setattr("spscanner_rag.apps.cli.prepared_files.WORTH_A_LINE", worth)
    long = "Anne signed the treaty. " * 1000  # some passes of the model
    document.write_text(long, encoding="utf-8")
    for _ in range(2):  # nothing is encoded the second time
        shown = run("scan", "-q", QUESTION, "--progress", document).err
        lines = re.findall(
            f"^reading {len(long):,} characters, about [0-9]+ s *$",
            shown,
            re.MULTILINE,
        )
        assert len(lines) == said


# Errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-q", " \n"], "--query: got ' \\n'; expected a question"),
        (["--top-k", "0"], '"elbow" or "elbow:5-30", or "all"'),
        (["--top-k", "many"], "--top-k: got 'many'; expected an integer"),
        (["--threshold", "1.5"], "--threshold: got 1.5; expected a score from 0 to 1"),
        (["--threads", "0"], "1: see `spscanner scan --help`"),
        (
            ["--max-tokens", "0"],
            "--max-tokens: got 0; expected an integer of at least 1\n",
        ),
        (["--count-tokens", "nope"], "use one of"),
        (["--order", "best"], '--order: got \'best\'; expected "document" or "score"'),
        (
            ["--format", "xml"],
            "'xml' is not one of 'text', 'json', 'html', 'markdown', 'csv'",
        ),
        (
            ["--out", "out.xls"],
            "--out out.xls: got the ending .xls; expected one of .txt, .text, .json",
        ),
        (["--out", "out"], "--out out: got no ending; expected one of .txt"),
        (
            ["--text-out", "no-such-folder/text.txt"],
            "there is no folder no-such-folder",
        ),
        (["--segment-tokens", "0"], "segment_tokens is 0; expected"),
        (
            ["--model", "./absent"],
            "./absent: no such folder; expected the folder of a checkpoint",
        ),
        (
            ["--model", "nobody/none"],
            "cannot get nobody/none from the Hugging Face Hub",
        ),
        (["--nonsense"], "No such option: --nonsense"),
    ],
)
def test_bad_options_are_one_line(
    scan: Run, document: Path, options: list[str], message: str
) -> None:
    scan(document, *options).refuses(message)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("empty.txt", b"", "got an empty file; expected text"),
        ("white.txt", b" \n", "got only white space"),
        ("binary.bin", b"\1ELF\0\0", "got binary data"),
        ("program.bin", b"\x7fELF\0\0", "got a program; expected text"),
        (
            "latin1.txt",
            b"caf\xe9",
            "got byte 0xe9 at 3, not UTF-8; expected UTF-8 text",
        ),
        ("\x1b[31m.txt", b"", "\\x1b[31m.txt: got an empty file"),
    ],
)
def test_bad_files_are_one_line_and_nothing_is_written(
    scan: Run, document: Path, tmp_path: Path, name: str, data: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(data)
    out = tmp_path / "out.json"
    scan(document, tmp_path / name, "--format", "json", "--out", out).refuses(message)
    assert not out.exists()


def test_no_files_and_outputs_that_are_documents(
    scan: Run, run: Run, tmp_path: Path, document: Path
) -> None:
    (tmp_path / "empty").mkdir()
    scan(tmp_path / "empty").refuses("got a folder in which nothing can be read")
    scan(tmp_path / "absent").refuses("no such file")
    scan(document, "--out", document).refuses("got a document to scan")
    scan(document, document, "--text-out", tmp_path / "new").refuses(
        "got 2 documents; expected a single one"
    )
    scan(document, "--text-out", document).refuses("got a document to scan")
    assert document.read_text(encoding="utf-8") == TEXT
    run("scan", "-q", "x").refuses("FILE")
    run("scan", document).refuses("--query")
    run("dance").refuses("dance")


def test_a_bad_option_is_found_before_the_model_is_loaded(
    scan: Run, document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(Scanner, "from_pretrained")
    for options in (
        ["--threshold", 2],
        [tmp_path / "absent"],
        ["--out", tmp_path],
        ["--out", tmp_path / "out.xls"],
        ["--max-tokens", 5, "--count-tokens", "nope"],
    ):
        assert scan(document, *options).code == 2
    with pytest.raises(AttributeError, match="from_pretrained"):
        scan(document)


def test_numba_is_loaded_only_for_much_to_read(
    scan: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backends = []

    def refuse(model: object, *, backend: str, **options: object) -> None:
        backends.append(backend)
        raise ValueError("the backend is enough to know")

    monkeypatch.setattr(Scanner, "from_pretrained", refuse)
    document = tmp_path / "document.txt"
    for characters in (1_000, 200_000):
        document.write_text("It rained. " * (characters // 10), encoding="utf-8")
        assert scan(document, "--device", "cpu").code == 2
    assert backends == ["torch", "auto"]


def test_each_document_is_cut_once_and_the_question_is_looked_up_once(
    scan: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"Anne signed page {number}. It rained." for number in range(3)]
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.txt").write_text(text, encoding="utf-8")
    cut, looked_up = list[str](), list[str]()
    segment, statistics = (
        SentenceSegmenter.segment_in_parts,
        CollectionIndex.statistics,
    )
    monkeypatch.setattr(
        SentenceSegmenter,
        "segment_in_parts",
        lambda self, text, between: (
            # once the language is known; before, it calls itself
            (self.language and cut.append(text)) or segment(self, text, between)
        ),
    )
    monkeypatch.setattr(
        CollectionIndex,
        "statistics",
        lambda self, query, **rest: (
            looked_up.append(query) or statistics(self, query, **rest)
        ),
    )
    answer = json.loads(scan(tmp_path, "--format", "json", "--top-k", "all").out)
    assert [entry["sentences"] for entry in answer["documents"]] == [2, 2, 2]
    assert (cut, looked_up) == (texts, [QUESTION])


def test_a_terminal_asks(
    run: Run, checkpoint: Path, document: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("scan", document, "--model", checkpoint, "--dtype", "float32", "-k", 1)
    assert "--query: got none" in run(*arguments).err
    typed = iter(["Who signed the treaty?", "  ", "What was dry?"])
    tokenize, prepared = reading.tokenize_units, list[int]()
    monkeypatch.setattr(
        reading,
        "tokenize_units",
        lambda *a, **k: prepared.append(1) or tokenize(*a, **k),
    )

    def ask(prompt: str) -> str:
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", ask)
    code, out, _ = run(*arguments)
    assert code == 0
    assert out.count(f"{document} {len(TEXT)} characters") == 2
    assert len(prepared) == 1
    assert "  Anne signed the treaty" in out
    assert "got none" in run(*arguments, "--format", "json").err


def test_the_exit_code_says_if_a_sentence_reaches_the_threshold(
    scan: Run, document: Path
) -> None:
    assert scan(document, "--threshold", 0).code == 0
    assert scan(document, "--threshold", 1).code == 1


@pytest.fixture
def pdf(tmp_path: Path, pdf_of: Callable[..., bytes]) -> Path:
    """A PDF of two pages."""
    path = tmp_path / "treaty.pdf"
    pages = [
        ["It rained all day.", "Anne signed the treaty, and"],
        ["the captain left.", "The well was dry."],
    ]
    path.write_bytes(pdf_of(pages))
    return path


def test_a_copy_of_a_pdf_has_the_best_sentences_highlighted(
    scan: Run, pdf: Path, tmp_path: Path
) -> None:
    from pypdf import PdfReader

    code, out, err = scan(pdf, "-k", 1, "--out", tmp_path / "marked.pdf")
    assert (code, out, err) == (0, "", "")
    notes = [
        page["/Annots"][0].get_object()
        for page in PdfReader(tmp_path / "marked.pdf").pages
    ]
    assert [note["/Contents"].split(", ")[0] for note in notes] == [
        f"{QUESTION}\n1 of 1"
    ] * 2
    place = json.loads(scan(pdf, "-k", 1, "--format", "json").out)["documents"][0][
        "passages"
    ][0]
    assert [box[0] for box in place["boxes"]] == [1, 2]


def test_a_copy_with_highlights_is_of_one_pdf(
    scan: Run, pdf: Path, document: Path, tmp_path: Path
) -> None:
    marked = tmp_path / "marked.pdf"
    assert (
        "got 2 documents for a PDF; expected one PDF"
        in scan(pdf, document, "--out", marked).err
    )
    assert (
        "treaty.txt for a PDF; expected the file of a PDF"
        in scan(document, "--out", marked).err
    )
    assert "got a document to scan" in scan(pdf, "--out", pdf).err
    assert not marked.exists()


def test_lines_of_json_are_the_passages(scan: Run, document: Path) -> None:
    lines = [
        json.loads(line) for line in scan(document, "-k", 2, "--json").out.splitlines()
    ]
    documents = json.loads(scan(document, "-k", 2, "--format", "json").out)["documents"]
    assert lines == [
        {"path": str(document), **each} for each in documents[0]["passages"]
    ]


def test_the_question_may_be_the_last_word(
    scan: Run, run: Run, checkpoint: Path, document: Path
) -> None:
    options = ("--model", checkpoint, "--dtype", "float32", "-k", 1)
    assert run("scan", document, QUESTION, *options).out == scan(document, "-k", 1).out
    for other in (document, document.with_name("none.txt")):
        assert "--query: got none" in run("scan", document, other, *options).err
