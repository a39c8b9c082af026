"""Small files as users have them: what a result of each is, and what none is.

A case is a file, texts that are a result each, and texts that no result has.
"""

import json
from collections.abc import Callable, Sequence
from email.message import EmailMessage

import pytest

pytest.importorskip("lxml", reason="the extra files is not installed")
pytest.importorskip("pypdfium2", reason="the extra files is not installed")

from spscanner_rag.files.reading import read_bytes
from tests.files.test_nothing_lost import results
from tests.small_files import epub, odt, pptx, shape, sheet_row, xlsx
from tests.word import docx, paragraph, row, table

DrawnPdf = Callable[..., bytes]
Case = tuple[str | bytes, Sequence[str], Sequence[str]]


def mail(body: str, **headers: str) -> bytes:
    message = EmailMessage()
    for name, value in headers.items():
        message[name] = value
    message.set_content(body)
    return bytes(message)


def forwarded() -> bytes:
    inner = EmailMessage()
    inner["Subject"] = "The lease"
    inner["From"] = "bob@example.org"
    inner.set_content("Bob left the mill. It rained.")
    message = EmailMessage()
    message["Subject"] = "Fwd: The lease"
    message.set_content("See below.")
    message.add_attachment(inner)
    return bytes(message)


def both_bodies() -> bytes:
    message = EmailMessage()
    message["Subject"] = "Rent"
    message.set_content("The rent is due. Pay it.")
    message.add_alternative("<p>The rent is due. Pay it.</p>", subtype="html")
    return bytes(message)


def notebook(*cells: dict[str, object]) -> str:
    return json.dumps({"cells": list(cells), "metadata": {}, "nbformat": 4})


STREAM = {"output_type": "stream", "name": "stdout", "text": ["Total: 4,194\n"]}
BOX = (
    "<w:p><w:r><w:pict><v:textbox xmlns:v='urn:schemas-microsoft-com:vml'>"
    "<w:txbxContent><w:p><w:r><w:t>Anne keeps the light.</w:t></w:r></w:p>"
    "</w:txbxContent></v:textbox></w:pict></w:r></w:p>"
)
CHANGED = (
    "<w:p><w:r><w:t xml:space='preserve'>The rent is </w:t></w:r>"
    "<w:del><w:r><w:delText>forty</w:delText></w:r></w:del>"
    "<w:ins><w:r><w:t>fifty</w:t></w:r></w:ins>"
    "<w:r><w:t xml:space='preserve'> marks.</w:t></w:r></w:p>"
)
DATED = "<cellXfs><xf numFmtId='0'/><xf numFmtId='14'/><xf numFmtId='10'/></cellXfs>"

CASES: dict[str, Case] = {
    # text: minutes, contracts, lists
    "minutes.txt": (
        "MINUTES\n\n1. Apologies\nNone.\n\n2. Harbour dues\n"
        "The council agreed to raise them. Mr. Reed objected.\n",
        ["2. Harbour dues The council agreed to raise them.", "Mr. Reed objected."],
        [],
    ),
    "prices.txt": (
        "Price list\n\nFlour .......... 12 marks\nOil ............ 40 marks\n",
        ["Flour .......... 12 marks", "Oil ............ 40 marks"],
        [],
    ),
    "recitals.txt": (
        "WHEREAS, the Lessor owns the mill; and\nWHEREAS, the Lessee needs it;\n\n"
        "NOW, THEREFORE, the parties agree as follows.",
        ["NOW, THEREFORE, the parties agree as follows."],
        [],
    ),
    "address.txt": (
        "Anne Reed\n12 Harbour St.\nSaltmere\n\nThe letter came. Nobody read it.",
        ["The letter came.", "Nobody read it."],
        [],
    ),
    "quoted.txt": (
        "> Who signed it?\nAnne signed the treaty. Bob did not.",
        ["Anne signed the treaty.", "Bob did not."],
        [],
    ),
    "initials.txt": (
        "J. R. Hale signed it. A. B. Moss did not.",
        ["J. R. Hale signed it.", "A. B. Moss did not."],
        [],
    ),
    "ellipsis.txt": (
        "He waited... Then it rained. Was it late? Yes!",
        ["Then it rained.", "Was it late?", "Yes!"],
        [],
    ),
    "windows.txt": ("It rained.\r\nNobody came.\r\n", ["Nobody came."], []),
    # tables
    "semicolons.csv": (
        "name;rent\nAnne;4,50\nBob;3,20\n",
        ["Anne;4,50", "Bob;3,20"],
        [],
    ),
    "pipes.csv": ("name|rent\nAnne|12\nBob|40\n", ["Anne|12", "Bob|40"], []),
    "tabs.tsv": ("name\trent\nAnne\t12\n", ["Anne 12"], []),
    "quotes.csv": (
        'name,note\nAnne,"She left. It rained,\nand nobody came."\nBob,none\n',
        ['Anne,"She left. It rained, and nobody came."', "Bob,none"],
        [],
    ),
    "dates.xlsx": (
        xlsx(
            {
                "Log": sheet_row(1, "Ship", "Came", "Share")
                + "<row r='2'><c r='A2' t='inlineStr'><is><t>Heron</t></is></c>"
                "<c r='B2' s='1'><v>44562</v></c><c r='C2' s='2'><v>0.25</v></c></row>"
            },
            styles=DATED,
        ),
        ["Heron | 2022-01-01 | 25%"],
        ["44562"],
    ),
    "two.xlsx": (
        xlsx(
            {
                "May": sheet_row(1, "Ship", "Toll") + sheet_row(2, "Heron", 12),
                "June": sheet_row(1, "Ship", "Toll") + sheet_row(2, "Swan", 40),
            }
        ),
        ["Heron | 12", "Swan | 40"],
        [],
    ),
    "note.xlsx": (
        xlsx({"Log": sheet_row(1, "The keeper left. Nobody came.")}),
        ["The keeper left.", "Nobody came."],
        [],
    ),
    # Markdown
    "notes.md": (
        "Anne signed it.[^1] Bob left.\n\n[^1]: In May. It rained.\n",
        ["Bob left.", "It rained."],
        [],
    ),
    "links.md": (
        "See [the lease][1] now. Anne signed it.\n\n[1]: https://example.org/a\n",
        ["See [the lease][1] now.", "Anne signed it."],
        [],
    ),
    "nested.md": (
        "- Keep it dry.\n  - Oil it. Eat.\n\n    More rain fell.\n",
        ["Eat.", "More rain fell."],
        [],
    ),
    "hard.md": ("One line  \nAnother line.\\\nThe end.", ["The end."], []),
    "front.md": (
        "---\ntitle: The mill\n---\n\n# Mill\n\nIt burned. Oh.\n",
        ["It burned."],
        [],
    ),
    # HTML
    "hidden.html": (
        "<p>It rained.</p><div style='display:none'>Buy now.</div>"
        "<p hidden>Secret.</p><p>Nobody came.</p>",
        ["It rained.", "Nobody came."],
        ["Buy now.", "Secret."],
    ),
    "definitions.html": (
        "<dl><dt>Lessee</dt><dd>The tenant. He pays.</dd></dl>",
        ["He pays."],
        [],
    ),
    "details.html": (
        "<details><summary>More</summary><p>The mill burned.</p></details>",
        ["The mill burned."],
        [],
    ),
    "breaks.html": (
        "<p>Anne Reed<br>12 Harbour Road<br>Saltmere</p><p>She left.</p>",
        ["She left."],
        [],
    ),
    "inline.html": (
        "<p>The <b>ten</b><i>ant</i> pays&nbsp;40&nbsp;marks.</p>",
        ["The tenant pays 40 marks."],
        [],
    ),
    "caption.html": (
        "<table><caption>Tolls of 1811</caption><tr><th>Ship<th>Toll"
        "<tr><td>Heron<td>12</table>",
        ["Heron | 12"],
        [],
    ),
    # word processors
    "box.docx": (docx(BOX + paragraph("It rained.")), ["Anne keeps the light."], []),
    "changed.docx": (docx(CHANGED), ["The rent is fifty marks."], ["forty"]),
    "clauses.docx": (
        docx(paragraph("8. Fees. The tenant pays. He leaves.")),
        ["8. Fees. The tenant pays.", "He leaves."],
        [],
    ),
    "grid.docx": (
        docx(table(row("Ship", "Toll", "Year"), row("Heron", "12", "1811"))),
        ["Heron | 12 | 1811", "Ship | Toll | Year"],
        [],
    ),
    "break.docx": (
        docx(
            "<w:p><w:r><w:t>Anne left.</w:t><w:br w:type='page'/>"
            "<w:t>It rained.</w:t></w:r></w:p>"
        ),
        ["Anne left.", "It rained."],
        [],
    ),
    "letter.odt": (
        odt("<text:p>Anne<text:s text:c='2'/>left.<text:line-break/>Oh no.</text:p>"),
        ["Anne left.", "Oh no."],
        [],
    ),
    "points.pptx": (
        pptx(shape("Tolls", kind="title") + shape("Ships pay 12 marks", "Boats none")),
        ["Ships pay 12 marks", "Boats none"],
        [],
    ),
    "verse.epub": (
        epub("<h1>One</h1><p>It rained.<br/>Nobody came.</p>", titles=["One"]),
        ["It rained.", "Nobody came."],
        [],
    ),
    # mails
    "reply.eml": (
        mail(
            "I agree. Pay him.\n\nOn Monday Bob wrote:\n> The rent is due.\n> Shall I?",
            Subject="Re: rent",
        ),
        ["Pay him.", "The rent is due."],
        [],
    ),
    "forwarded.eml": (forwarded(), ["Bob left the mill.", "See below."], []),
    "both.eml": (both_bodies(), ["The rent is due."], ["<p>"]),
    "flowed.eml": (
        mail(
            "The rent is due on the first day of the month and was not paid in\n"
            "any of the last three. Pay it.",
            Subject="Rent",
        ),
        ["Pay it."],
        [],
    ),
    # data
    "log.ipynb": (
        notebook(
            {"cell_type": "markdown", "source": ["The tolls fell. It rained."]},
            {"cell_type": "code", "source": "total()", "outputs": [STREAM]},
        ),
        ["The tolls fell.", "Total: 4,194"],
        [],
    ),
    "nested.json": (
        json.dumps({"ships": [{"name": "Heron", "crew": [{"name": "Zoë Low"}]}]}),
        [],
        ["\\u00eb"],
    ),
    "lines.jsonl": (
        '{"ship": "Heron", "toll": 12}\n{"ship": "Swan", "toll": 40}\n',
        ["ship: Heron | toll: 12", "ship: Swan | toll: 40"],
        [],
    ),
    "records.xml": (
        "<log><ship><name>Heron</name><toll>12</toll></ship>"
        "<ship><name>Swan</name><toll>40</toll></ship></log>",
        ["name: Heron | toll: 12", "name: Swan | toll: 40"],
        [],
    ),
    "paper.tex": (
        "\\documentclass{article}\\newcommand{\\mill}{the mill}\\begin{document}"
        "\\section{Fire}It burned.\\footnote{In May.} Anne \\emph{left}."
        "\\end{document}",
        ["Anne left."],
        ["\\emph", "documentclass"],
    ),
    "talk.vtt": (
        "WEBVTT\n\n00:01.000 --> 00:03.000\n<v Anne>I signed it.\n\n"
        "00:03.000 --> 00:05.000\n<v Bob>It rained.\n",
        [],
        ["-->", "<v"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_results_of_a_small_file(name: str) -> None:
    content, expected, unread = CASES[name]
    data = content.encode() if isinstance(content, str) else content
    shown = results(read_bytes(name, data))
    assert not [text for text in expected if text not in shown], shown
    assert not [text for text in unread if text in " ".join(shown)], shown


def lines(left: float, top: float, *texts: str) -> list[tuple[float, float, str]]:
    """Lines below each other, as a PDF draws them."""
    return [(left, top - 13 * number, text) for number, text in enumerate(texts)]


def drawn_results(drawn_pdf: DrawnPdf, *pages: list[tuple[float, float, str]]) -> str:
    """The results of a drawn PDF, each between bars."""
    shown = results(read_bytes("drawn.pdf", drawn_pdf(pages)))
    return f"|{'|'.join(shown)}|"


def test_an_invoice_without_borders_has_rows(drawn_pdf: DrawnPdf) -> None:
    page = lines(72, 700, "Goods", "Flour", "Oil", "Rope")
    page += lines(300, 700, "Weight", "12", "40", "7")
    page += lines(450, 700, "Marks", "9.50", "3.20", "1.10")
    shown = drawn_results(drawn_pdf, page)
    assert "|Flour 12 9.50|Oil 40 3.20|Rope 7 1.10|" in shown


def test_a_letter_with_its_sender_at_the_edge(drawn_pdf: DrawnPdf) -> None:
    pages = []
    for month in ("May", "June", "July"):
        page = lines(72, 800, "Reed and Sons, 12 Harbour Road, Saltmere")
        page += lines(72, 700, f"The rent of {month} was not paid and is due now, so")
        page += lines(72, 687, "pay it.")
        page += lines(72, 660, f"Nobody else owes us anything for {month}.")
        pages.append(page)
    shown = drawn_results(drawn_pdf, *pages)
    assert shown.count("Reed and Sons, 12 Harbour Road, Saltmere") == 1
    assert "|The rent of May was not paid and is due now, so pay it.|" in shown


def test_a_list_with_hanging_lines(drawn_pdf: DrawnPdf) -> None:
    page = lines(72, 700, "(a) keep the roof of the mill dry and its", "(b) pay.")
    page[1:1] = [(86, 687, "wheel oiled;")]
    page[2] = (72, 674, "(b) pay the rent in May.")
    shown = drawn_results(drawn_pdf, page)
    assert "|(a) keep the roof of the mill dry and its wheel oiled;|" in shown
    assert "|(b) pay the rent in May.|" in shown
