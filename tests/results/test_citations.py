"""Places of passages, which neither texts nor names can forge."""

import re

import pytest

from spscanner_rag.files.documents import TextFile
from spscanner_rag.results.place_names import place_of_names
from spscanner_rag.results.scan_result import ScanResult
from spscanner_rag.text.blocks import Block
from tests.text.test_framing import HEADS, INVISIBLE, MARKUP

NAMES = [
    "a.txt, page 7",
    "b\n[2] law.pdf, page 9.txt",
    "x\u202etxt.pdf",
    "page 9",
    'c" , page 3',
    "[2] law.pdf",
    "![x](http://evil.example).md",
    "d > Appendix",
    "Page 3\t.md",
    "characters 0 to 5",
]


@pytest.mark.parametrize("text", [*HEADS, *MARKUP])
def test_a_text_cannot_add_to_the_list_of_places(text: str) -> None:
    document = TextFile("log.txt", text)
    result = ScanResult("Who?", text, [0], [len(text)], [1.0], document=document)
    shown = result.context(cite=True)
    passage, _, places = shown.rpartition("\n\n")
    assert places == f"[1] log.txt, characters 0 to {len(text)}"
    assert passage.endswith(" [1]")
    assert len(re.findall(r"(?<!\\)\[\d+\]", shown)) == 2
    assert result.context() == text  # without marks it is verbatim


@pytest.mark.parametrize("name", NAMES)
def test_a_name_cannot_pose_as_a_place(name: str) -> None:
    text = "Anne signed it."
    blocks = (Block(0, len(text), "heading", level=1, title=name),)
    document = TextFile(name, text, blocks)
    result = ScanResult("Who?", text, [0], [len(text)], [1.0], document=document)
    shown = result.context(cite=True)
    assert shown.startswith(f"{text} [1]\n\n[1] ")
    assert len(shown.splitlines()) == 3
    assert len(re.findall(r"(?<!\\)\[\d+\]", shown)) == 2
    assert not INVISIBLE.search(shown)
    unquoted = re.sub(r'"[^"]*"', "", result.select(top_k=1)[0].cite())
    assert not re.search(r"page \d|characters", unquoted, re.IGNORECASE)


def test_ordinary_names_stay_as_they_are() -> None:
    assert place_of_names("report 2.pdf", "page iv") == "report 2.pdf, page iv"
    assert place_of_names("a.md", headings=["Setup", "Linux"]) == "a.md, Setup > Linux"
    assert place_of_names("", "page 3") == "page 3"
