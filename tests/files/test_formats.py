"""The register of file formats, and everything that has to follow from it.

A format that is added to the register fails here until it has a sample and a row in
docs/files.md.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spscanner_rag.apps.cli.batch import _INPUTS
from spscanner_rag.apps.cli.shared_options import FILES
from spscanner_rag.files.formats import (
    ENDINGS,
    FORMATS,
    format_named_by,
    formats_in_words,
)
from spscanner_rag.files.reading import read_bytes
from spscanner_rag.files.recognition import format_of
from tests.small_files import epub, msg, ods, odt, pptx, shape, sheet_row, xlsx
from tests.word import docx, paragraph

REPOSITORY = Path(__file__).resolve().parents[2]

SAMPLES: dict[str, bytes | None] = {
    "text": b"The keeper left.",
    "Markdown": b"# Log\n\nThe keeper left.",
    "HTML": b"<!DOCTYPE html><p>The keeper left.",
    "PDF": None,  # made by a fixture
    "DOCX": docx(paragraph("The keeper left.")),
    "XLSX": xlsx({"Log": sheet_row(1, "The keeper left.")}),
    "ODS": ods({"Log": [["The keeper left."]]}),
    "PPTX": pptx(shape("The keeper left.")),
    "EPUB": epub("<p>The keeper left.</p>"),
    "ODT": odt("<text:p>The keeper left.</text:p>"),
    "RTF": rb"{\rtf1 The keeper left.\par}",
    "EML": b"From: Ann <ann@example.org>\n\nThe keeper left.\n",
    "MSG": msg(body="The keeper left."),
    "IPYNB": b'{"cells": [{"cell_type": "raw", "source": "The keeper left."}]}',
    "JSON": b'{"log": "The keeper left."}',
    "JSON Lines": b'{"log": "The keeper left."}\n',
    "YAML": b"log: The keeper left.\n",
    "XML": b"<?xml version='1.0'?><log>The keeper left.</log>",
    "LaTeX": rb"\begin{document}The keeper left.\end{document}",
    "CSV": b"who,what\nkeeper,The keeper left.\n",
    "subtitles": b"WEBVTT\n\n00:01.000 --> 00:02.000\nThe keeper left.\n",
    "log": b"2026-11-28 10:00:00 The keeper left.\n",
}
"""A small file of each format with the sentence "The keeper left."."""


NEEDED = ("lxml", "pypdfium2", "python_calamine", "oxmsg", "yaml", "pylatexenc")


def test_every_format_has_a_sample() -> None:
    missing = set(FORMATS) - set(SAMPLES)
    assert not missing, f"add samples of {missing} to SAMPLES in {__file__}"


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_read(name: str, pdf_of: Callable[..., bytes]) -> None:
    file_format = FORMATS[name]
    data = SAMPLES[name] or pdf_of([["The keeper left."]])
    for ending in file_format.endings:
        path = f"document{ending.upper()}"
        assert format_named_by(path) == name
        assert format_of(path, data).name == name
        assert "The keeper left." in read_bytes(path, data).text


@pytest.mark.parametrize("name", SAMPLES)
def test_what_a_format_recognizes_is_its_own_alone(
    name: str, pdf_of: Callable[..., bytes]
) -> None:
    data = SAMPLES[name] or pdf_of([["The keeper left."]])
    recognizing = [other for other in FORMATS if FORMATS[other].recognizes(data)]
    assert recognizing == ([name] if FORMATS[name].recognizer else [])
    if recognizing:
        assert format_of("without an ending", data).name == name


@pytest.mark.parametrize("name", FORMATS)
def test_an_entry_is_consistent(name: str) -> None:
    file_format = FORMATS[name]
    assert file_format.name == name
    for ending in file_format.endings:
        assert re.fullmatch(r"\.[a-z0-9]+", ending)
    for media_type in file_format.media_types:
        assert re.fullmatch(r"[a-z]+/[a-z0-9.+-]+", media_type)
    assert file_format.recognizer or not file_format.is_binary, (
        f"{name}: a binary format needs a recognizer"
    )


def test_no_two_formats_share_an_ending() -> None:
    endings: list[str] = []
    for file_format in FORMATS.values():
        endings += file_format.endings
    assert len(set(endings)) == len(endings)
    assert set(endings) == set(ENDINGS)


@pytest.mark.parametrize("name", [name for name in FORMATS if FORMATS[name].extra])
def test_the_extra_of_a_format_is_named_where_it_is_missing(
    name: str, monkeypatch: pytest.MonkeyPatch, pdf_of: Callable[..., bytes]
) -> None:
    extra = FORMATS[name].extra
    data = SAMPLES[name] or pdf_of([["The keeper left."]])
    for module in NEEDED:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf'pip install "\.\[{extra}\]"'):
        read_bytes(f"document{FORMATS[name].endings[0]}", data)


def test_the_page_of_files_describes_every_format() -> None:
    page = (REPOSITORY / "docs" / "files.md").read_text(encoding="utf-8")
    table = page.split("| file | read by | resulting text |\n")[1].split("\n\n")[0]
    missing: list[str] = []
    for ending in ENDINGS:
        if ending != ".text" and f"`{ending}`" not in table:
            missing.append(ending)
    assert not missing, f"docs/files.md: no row of the table of files has {missing}"


@pytest.mark.parametrize("help_text", [FILES.help, _INPUTS.help])
def test_help_texts_name_the_formats(help_text: str) -> None:
    for name, file_format in FORMATS.items():
        if file_format.is_listed:
            assert name.lower() in help_text.lower()


def test_messages_name_the_formats() -> None:
    with pytest.raises(ValueError, match=f"expected {formats_in_words()}: save it"):
        format_of("letter.doc", b"\xd0\xcf\x11\xe0 old")
