"""Finds an answer in each kind of file of examples/data/kinds, with its place."""

from pathlib import Path

import pytest

from spscanner_rag import Scanner
from spscanner_rag.files.folders import read_all
from spscanner_rag.files.formats import FORMATS

for module in ("lxml", "oxmsg", "pylatexenc", "python_calamine"):
    pytest.importorskip(module, reason="the extra files is not installed")

KINDS = Path(__file__).resolve().parents[2] / "examples" / "data" / "kinds"

QUESTIONS = {
    "What did the anchor chain cost?": (
        "120 marks",
        "costs.xlsx, sheet Costs, cells A4:C4",
    ),
    "Where does the helmsman Piet Maas come from?": (
        "Delft",
        "crew.ods, sheet Crew, cells A3:C3",
    ),
    "Who designed the tower?": ("Clara Brandt", "talk.pptx, slide 2"),
    "Where did the mast of the Swallow break?": (
        "near the reef",
        "novel.epub, chapter 1, The storm",
    ),
    "Where has the school moved to?": ("granary", "letter.odt, To the council"),
    "Who repairs the roof of the mill?": ("landlord", "contract.rtf, Lease"),
    "Who signed the treaty with the towns?": ("keeper", "treaty.eml, line 4"),
    "When did the treasurer resign?": ("in May", "minutes.msg, line 1"),
    "Which month was the best for herring?": ("October", "sales.ipynb, cell 1"),
    "Who is the master of the Heron?": ("Mary Low", "ships.json, $.ships[1]"),
    "What was the gift of the bishop?": ("silver bell", "visits.jsonl, line 1"),
    "Which pilot knows the sandbank?": ("Ellen Reed", "harbour.yaml, $.pilots[0]"),
    "Who is the author of On Tides?": ("Sofia Lund", "library.xml, /library/book[1]"),
    "When do the eels return to the bay?": (
        "April",
        "paper.tex, The eels of the bay > Results",
    ),
}
"""For each question, words of the answer and the citation of its place."""


@pytest.mark.slow
def test_the_answer_in_each_kind_of_file_is_first_with_a_place() -> None:
    notes: list[str] = []
    documents = read_all([str(KINDS)], notes.append)
    assert not notes
    scanner = Scanner.from_pretrained(dtype="float32")
    failed: dict[str, str] = {}
    for question, (answer, citation) in QUESTIONS.items():
        results = scanner.scan_many(
            [(question, document) for document in documents], together=True
        )
        best = max(
            (result.select(top_k=1, order="score")[0] for result in results),
            key=lambda passage: passage.score,
        )
        cited = best.cite().removeprefix(f"{KINDS}/")
        if answer not in best.text or cited != citation:
            failed[question] = f"{best.text!r} ({cited})"
    assert not failed


def test_there_is_a_file_of_each_new_kind() -> None:
    endings = {path.suffix for path in KINDS.iterdir()}
    older = {"text", "Markdown", "HTML", "PDF", "DOCX", "CSV", "subtitles", "log"}
    for name, file_format in FORMATS.items():
        if name not in older:
            assert endings.intersection(file_format.endings), name
