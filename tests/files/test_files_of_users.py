"""Small files as users have them: what a result of each is, and what none is.

A case is a file, texts that are a result each, and texts that no result has.
"""

import json
from collections.abc import Callable, Sequence
from email.message import EmailMessage
from typing import Any

import pytest

pytest.importorskip("lxml", reason="the extra files is not installed")
pytest.importorskip("pypdfium2", reason="the extra files is not installed")

from spscanner_rag.files.reading import read_bytes
from tests.files.test_nothing_lost import results
from tests.small_files import epub, odt, pptx, shape, sheet_row, xlsx
from tests.word import docx, paragraph, row, table

DrawnPdf = Callable[..., bytes]
Case = tuple[str | bytes, Sequence[str], Sequence[str]]


def check_results(name: str, case: Case) -> None:
    """Read the file of a case by its name, and compare its results."""
    content, expected, unread = case
    data = content.encode() if isinstance(content, str) else content
    shown = results(read_bytes(name, data))
    assert not [text for text in expected if text not in shown], shown
    assert not [text for text in unread if text in " ".join(shown)], shown


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
FORMULA = (
    "<m:oMath xmlns:m='http://schemas.openxmlformats.org/officeDocument/2006/math'>"
    "<m:r><m:t>{}</m:t></m:r></m:oMath>"
)
FORM = (
    "<w:p><w:r><w:t xml:space='preserve'>Heated: </w:t></w:r><w:r><w:fldChar"
    " w:fldCharType='begin'><w:ffData><w:checkBox><w:default w:val='1'/></w:checkBox>"
    "</w:ffData></w:fldChar></w:r><w:r><w:t xml:space='preserve'> Town: </w:t></w:r>"
    "<w:r><w:fldChar w:fldCharType='begin'><w:ffData><w:ddList><w:result w:val='1'/>"
    "<w:listEntry w:val='Riga'/><w:listEntry w:val='Ulm'/></w:ddList></w:ffData>"
    "</w:fldChar></w:r></w:p>"
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
    "sections.txt": (
        "Section 8. Logo Rights. He may use it. He asks.\n\n"
        "ARTICLE IX. TERM. It ends. Yes.\n\nI. Fees\nHe pays.\nII. Rent\nIt is due.",
        [
            "Section 8. Logo Rights. He may use it.",
            "ARTICLE IX. TERM. It ends.",
            "II. Rent It is due.",
        ],
        [],
    ),
    "references.txt": (
        "It is contract 14.CAT.OP.029 of May. It rained.",
        ["It is contract 14.CAT.OP.029 of May.", "It rained."],
        [],
    ),
    "subclauses.txt": (
        "4.1 It includes:\n4.1.1 what is marked; and\n4.1.2 any note of\n1.5 million"
        " marks.\n4.2 The toll is due; and\n4.3 it is paid. Yes.\n",
        [
            "4.1 It includes:",
            "4.1.1 what is marked; and",
            "4.1.2 any note of 1.5 million marks.",
            "4.2 The toll is due; and",
            "4.3 it is paid.",
        ],
        [],
    ),
    "dashes.txt": (
        "He must:\n– keep it dry\n– pay\n→ call\n→ wait\n☑ done\n✗ lost\n",
        ["– keep it dry", "– pay", "→ call", "→ wait", "☑ done", "✗ lost"],
        [],
    ),
    "phone.txt": (
        "[10:22, 3/4/2024] Anne: rent is paid\n[10:23, 3/4/2024] Bob: thanks\n",
        ["[10:23, 3/4/2024] Bob: thanks"],
        [],
    ),
    "quoting.txt": (
        "Bob wrote:\n> Dear Anne,\n>\n> The rent is due. Pay it.",
        ["Pay it.", "> > The rent is due."],
        [],
    ),
    "aligned.txt": (
        "Qty   Goods           Marks\n---   ------------   ------\n"
        " 12   Sacks of flour   40.00\n  3   Barrels          8.00\n"
        "Payment is due in May. Pay it.\n",
        ["12 Sacks of flour 40.00", "3 Barrels 8.00", "Payment is due in May."],
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
    "clauses.md": (
        "**8. Logo Rights.** He may use it. He asks.\n\n"
        "**9.1.** He pays.\n\n~~Old term.~~ It ends.\n\n"
        "1. *Late fees.* Five marks. Yes.\n",
        [
            "**8. Logo Rights.** He may use it.",
            "**9.1.** He pays.",
            "~~Old term.~~",
            "1. *Late fees.* Five marks.",
        ],
        [],
    ),
    "tagged.md": (
        "<h1 align='center'>Mill</h1>\n\n<ul>\n<li>Keep it dry</li>\n<li>Oil it</li>"
        "\n</ul>\n\n<table>\n<tr><td>Ship</td><td>Toll</td></tr>\n"
        "<tr><td>Heron</td><td>12</td></tr>\n</table>\n",
        ["Keep it dry", "Oil it", "| Ship | Toll", "| Heron | 12"],
        ["Mill"],
    ),
    "badges.md": (
        "[![build](https://a.org/b.svg)](https://a.org)\n[![docs](https://a.org/d.svg)]"
        "(https://a.org/d)\n\nIt rained.\n",
        ["It rained."],
        ["[! ["],
    ),
    "quotation.md": (
        "> The rent is\n> due. Pay it.\n\n---\n\nIt rained.\n",
        ["The rent is due.", "Pay it.", "It rained."],
        [">", "---"],
    ),
    # HTML
    "fields.html": (
        "<p>Name: <input value='Anne Reed'> <input type=hidden value=key></p>"
        "<p><input type=checkbox checked> Paid</p>",
        ["Name: Anne Reed", "\u2612 Paid"],
        ["key"],
    ),
    "facts.html": (
        "<table><tr><th>Founders</th><td><ul><li>Anne Reed</li><li>Bob Hale</li></ul>"
        "</td></tr><tr><th>Toll</th><td>12</td></tr></table>",
        ["Founders | - Anne Reed - Bob Hale", "Toll | 12"],
        [],
    ),
    "saved.html": (
        "<meta charset=gb2312><p>\u8c37\u6b4c\u7684\u7cfb\u7edf\u3002</p>",
        ["\u8c37\u6b4c\u7684\u7cfb\u7edf\u3002"],
        [],
    ),
    "menu.html": (
        "<p><a>Docs</a><a>Blog</a> and <a>m</a>ore</p><svg></svg>",
        ["Docs Blog and more"],
        [],
    ),
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
    "formulas.docx": (
        docx(f"<w:p>{FORMULA.format('a=b')}{FORMULA.format('c=d')}</w:p>"),
        ["a=b c=d"],
        [],
    ),
    "capital.docx": (
        docx(
            "<w:p><w:pPr><w:framePr w:dropCap='drop'/></w:pPr><w:r><w:t>B</w:t></w:r>"
            "</w:p><w:p><w:r><w:t>utterworth came. It rained.</w:t></w:r></w:p>"
        ),
        ["Butterworth came.", "It rained."],
        [],
    ),
    "form.docx": (docx(FORM), ["Heated: \u2612 Town: Ulm"], []),
    "struck.rtf": (
        "{\\rtf1 The \\strike old\\strike0  rent is 40\\super 1\\nosupersub ."
        " It fell.}",
        ["The ~~old~~ rent is 40\u00b9.", "It fell."],
        [],
    ),
    "struck.odt": (
        odt(
            "<text:p>The <text:span text:style-name='T1'>old</text:span> rent."
            "</text:p>",
            styles="<style:style style:name='T1'><style:text-properties"
            " style:text-line-through-style='solid'/></style:style>",
        ),
        ["The ~~old~~ rent."],
        [],
    ),
    "struck.pptx": (
        pptx(
            "<p:sp><p:nvSpPr><p:nvPr/></p:nvSpPr><p:txBody><a:p><a:r><a:rPr"
            " strike='sngStrike'/><a:t>Old</a:t></a:r><a:r><a:t> rent</a:t></a:r></a:p>"
            "</p:txBody></p:sp>"
        ),
        ["~~Old~~ rent"],
        [],
    ),
    "continued.odt": (
        odt(
            "<text:list text:style-name='L'><text:list-item><text:p>Oil it</text:p>"
            "</text:list-item></text:list><text:p>Then:</text:p><text:list"
            " text:style-name='L' text:continue-numbering='true'><text:list-item>"
            "<text:p>Pay</text:p></text:list-item></text:list>",
            styles="<text:list-style style:name='L'><text:list-level-style-number"
            " text:level='1' style:num-format='1' style:num-suffix='.'/>"
            "</text:list-style>",
        ),
        ["1. Oil it", "2. Pay"],
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
    "bounced.eml": (
        b"Subject: Failed\nContent-Type: multipart/report; boundary=B\n\n"
        b"--B\nContent-Type: text/plain\n\nIt was not sent.\n"
        b"--B\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; a.org\n\n"
        b"Action: failed\nStatus: 5.1.1\n--B--\n",
        ["It was not sent.", "Reporting-MTA: dns; a.org"],
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
    "feed.json": (
        json.dumps([{"body": "<p>The <b>rent</b> is&nbsp;due.</p>", "id": 1}]),
        ["body: The rent is due. | id: 1"],
        [],
    ),
    "feed.xml": (
        "<rss><item><title>Rent</title><description><![CDATA[<p>It is <b>due</b>."
        "</p>]]></description></item></rss>",
        ["title: Rent | description: It is due."],
        [],
    ),
    "shop.csv": (
        'id,text,price\n1,"<p>Good <b>flour</b></p>",12\n2,"Oil<br>of Riga",40\n',
        ['1," Good flour ",12', '2,"Oil of Riga",40'],
        [],
    ),
    "article.nxml": (
        "<!DOCTYPE article><article><p>It was <xref rid='b1'>signed</xref> in Riga"
        "<pb n='7'/>. It rained.</p></article>",
        ["It was signed in Riga.", "It rained."],
        ["rid", "<"],
    ),
    "notes.xml": (
        "<body><p>It was signed<note>In May.</note> in Riga. It rained.</p>"
        "<table><row><cell>Heron</cell><cell>12</cell></row></table></body>",
        ["It was signed[1] in Riga.", "It rained.", "[1] In May.", "Heron | 12"],
        [],
    ),
    "flow.yaml": (
        "ships:\n  - name: Heron\n    crew: [Anne, {name: Bob}]\n  - &swan\n"
        "    name: Swan\n  - *swan\n",
        [
            "ships: - name: Heron crew: [Anne, {name: Bob}]",
            "&swan name: Swan",
            "*swan",
        ],
        [],
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
    "definitions.tex": (
        "\\begin{document}\\newcommand{\\thm}{\\begin{theorem}}"
        "\\newcommand{\\ethm}{\\end{theorem}}"
        "\\newenvironment{x}{\\begin{y} \\bf}{\\end{y}}\\def\\zo{\\{0,1\\}}"
        "It \\emph{rained}. \\begin{x}He left.\\end{x}\\end{document}",
        ["It rained.", "He left."],
        ["theorem", "emph"],
    ),
    "arguments.tex": (
        "\\begin{document}\\begin{tabular}{ll}Ship & Toll \\\\ \\cmidrule(lr){1-2}"
        "\\multicolumn{2}{c}{Swan} \\\\ \\multirow{2}{*}{Heron} & 12\\end{tabular}\n\n"
        "\\textcolor{red}{Pay} it. \\sout{Old rent.}\n\n"
        "\\begin{theorem}[Main]All pay.\\end{theorem}"
        "\\begin{thebibliography}{9}\\bibitem{a} Reed, 1811.\\end{thebibliography}"
        "\\end{document}",
        ["Swan", "Heron | 12", "Pay it.", "(Main) All pay.", "[a] Reed, 1811."],
        ["2c", "1-2", "red"],
    ),
    "slide.tex": (
        "\\begin{document}\\begin{frame}{Tolls}\\begin{columns}\\begin{column}"
        "{0.5\\textwidth}Ships pay.\\end{column}\\end{columns}\\end{frame}"
        "\\end{document}",
        ["Ships pay."],
        ["0.5", "Tolls"],
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
    check_results(name, CASES[name])


def test_a_slide_or_chapter_without_a_title_is_not_below_the_one_before() -> None:
    slides = read_bytes(
        "a.pptx",
        pptx(shape("Tolls", kind="title") + shape("Ships pay"), shape("Boats none")),
    )
    assert slides.where(slides.text.index("Ships")) == "slide 1 · Tolls"
    assert slides.where(slides.text.index("Boats")) == "slide 2"
    titles = pptx(shape("Tolls", kind="title"), shape("Boats none"))
    assert results(read_bytes("a.pptx", titles)) == ["Tolls", "Boats none"]
    book = read_bytes("a.epub", epub("<h1>Fire</h1><p>It burned.</p>", "<p>Rain.</p>"))
    assert book.headings(book.text.index("burned")) == ("Fire",)
    assert book.headings(book.text.index("Rain")) == ()


def test_a_slide_of_open_document_has_its_title() -> None:
    slide = (
        "<draw:page><draw:frame xmlns:presentation='p' presentation:class='title'>"
        "<draw:text-box><text:p>Tolls</text:p></draw:text-box></draw:frame>"
        "<draw:frame><draw:text-box><text:p>Ships pay.</text:p></draw:text-box>"
        "</draw:frame></draw:page><draw:page><draw:frame>"
        "<draw:text-box><text:p>Rain.</text:p></draw:text-box></draw:frame></draw:page>"
    )
    document = read_bytes("a.odp", odt(slide, kind="presentation"))
    assert document.where(document.text.index("Ships")) == "slide 1 · Tolls"
    assert document.where(document.text.index("Rain")) == "slide 2"


def test_a_note_counts_something() -> None:
    page = "<p>It rained.</p><svg></svg><svg><text>Mill</text></svg>"
    assert read_bytes("a.html", page.encode()).notes == (
        "left out words in drawings: 1",
    )
    empty = "<p>It rained.</p><svg></svg>"
    assert read_bytes("a.html", empty.encode()).notes == ()


def test_titles_of_sections_in_xml_are_headings() -> None:
    page = (
        "<article><sec><title>Fire</title><p>It burned.</p><sec><title>Why</title>"
        "<p>Nobody knows</p></sec></sec></article>"
    )
    document = read_bytes("a.xml", page.encode())
    assert document.headings(document.text.index("burned")) == ("Fire",)
    assert document.headings(document.text.index("Nobody")) == ("Fire", "Why")
    assert results(document) == ["It burned.", "Nobody knows"]


def test_what_a_mail_in_html_quotes_is_marked() -> None:
    message = EmailMessage()
    message["Subject"] = "Re: rent"
    message.set_content(
        "<p>I agree.</p><blockquote><p>The rent is due.</p><table><tr><td>May<td>12"
        "</table></blockquote><p>Anne</p><p>-----Original Message-----</p><p>Pay.</p>",
        subtype="html",
    )
    document = read_bytes("a.eml", bytes(message))
    places = [
        document.place_name(document.text.index(word))
        for word in ("agree", "The rent", "May", "Anne", "Pay")
    ]
    quoted = [place.endswith("quoted") for place in places]
    assert quoted == [False, True, True, False, True]


def test_footers_of_slides_are_read_once() -> None:
    edges = shape("Reed Ltd.", kind="ftr") + shape("7", kind="sldNum")
    data = pptx(shape("Ships pay") + edges, shape("Boats none") + edges)
    document = read_bytes("a.pptx", data)
    assert results(document) == ["Ships pay", "Reed Ltd.", "Boats none"]
    note = 'repeated at edges of slides and read once: "Reed Ltd."'
    assert document.notes == (note,)


def test_formulas_without_their_values_are_named() -> None:
    row = (
        "<row r='1'><c r='A1'><f>SUM(B1:B2)</f><v/></c><c r='B1'><f>1+1</f><v>2</v></c>"
        "<c r='C1' t='str'><f>\"\"</f><v></v></c></row>"
    )
    document = read_bytes("a.xlsx", xlsx({"Log": row}))
    assert any("Log: 1 formulas without" in note for note in document.notes)


def test_headings_of_tagged_markdown_are_headings() -> None:
    page = "<h1>Mill</h1>\n\n## [Fees](#a) ![](b.svg) {#fees}\n\nHe pays.\n"
    document = read_bytes("a.md", page.encode())
    assert document.headings(document.text.index("He pays")) == ("Mill", "Fees")
    hidden = (
        "<!-- <h1>Draft</h1> -->\n<script>\nx = '<h2>Code</h2>'\n</script>\n\nRain."
    )
    document = read_bytes("a.md", hidden.encode())
    assert document.headings(document.text.index("Rain")) == ()


def lines(left: float, top: float, *texts: str) -> list[tuple[Any, ...]]:
    """Lines below each other, as a PDF draws them."""
    return [(left, top - 13 * number, text) for number, text in enumerate(texts)]


def drawn_results(drawn_pdf: DrawnPdf, *pages: list[tuple[Any, ...]]) -> str:
    """The results of a drawn PDF, each between bars."""
    shown = results(read_bytes("drawn.pdf", drawn_pdf(pages)))
    return f"|{'|'.join(shown)}|"


def test_an_invoice_without_borders_has_rows(drawn_pdf: DrawnPdf) -> None:
    page = lines(72, 700, "Goods", "Flour", "Oil", "Rope")
    page += lines(300, 700, "Weight", "12", "40", "7")
    page += lines(450, 700, "Marks", "9.50", "3.20", "1.10")
    shown = drawn_results(drawn_pdf, page)
    assert "|Flour 12 9.50|Oil 40 3.20|Rope 7 1.10|" in shown


def test_a_cell_of_several_lines_is_read_to_its_end(drawn_pdf: DrawnPdf) -> None:
    page = [(72, 700, "Item"), (150, 700, "Goods"), (400, 700, "Marks")]
    page += [(72, 680, "A-1"), (150, 680, "Flour of the best kind, hal-")]
    page += [(400, 680, "1,250.00"), (150, 668, "lowed at Riga in May")]
    page += [(72, 650, "A-2"), (150, 650, "Oil"), (400, 650, "40.00")]
    shown = drawn_results(drawn_pdf, page)
    assert "|A-1 Flour of the best kind, hallowed at Riga in May 1,250.00|" in shown


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


def test_a_sentence_over_two_pages_with_a_running_header(drawn_pdf: DrawnPdf) -> None:
    header = lines(72, 810, "Annals of the northern towns, volume 3")
    first = header + lines(72, 773, "Rain fell for weeks. Nobody came to the market.")
    first += lines(72, 760, "The council met on Monday in the old hall of the")
    first += lines(72, 747, "town. The treaty with the northern towns was signed by")
    first += [(72, 60, "1 Minutes of the council.", 7), (290, 30, "12", 7)]
    second = header + lines(
        72, 760, "Anne Reed in the presence of two witnesses of the"
    )
    second += lines(72, 747, "council. Rain fell on the market for weeks, and no one")
    second += [*lines(72, 734, "came to the old hall."), (290, 30, "13", 7)]
    shown = drawn_results(drawn_pdf, first, second)
    assert "was signed by Anne Reed in the presence" in shown
    assert shown.count("Annals of the northern towns") == 1


def test_what_two_pages_share_is_never_left_out(drawn_pdf: DrawnPdf) -> None:
    pages = []
    for name in ("Anne Reed", "Bob Hale"):
        page = lines(72, 800, "Thank you")
        page += lines(72, 700, f"The mill of {name} burned down.")
        pages.append(page)
    assert "|Thank you|" in drawn_results(drawn_pdf, *pages)


def test_a_word_divided_before_a_capital_is_in_one_sentence(
    drawn_pdf: DrawnPdf,
) -> None:
    page = lines(
        72,
        700,
        "A candidate waits until one of three things happens: it wins,",
        "(c) a period of time goes by with no winner. It sends Request-",
        "Vote RPCs in parallel to each of the other servers of the town.",
    )
    assert "|It sends Request- Vote RPCs in parallel" in drawn_results(drawn_pdf, page)


def test_clauses_with_numbers_before_a_gap_are_cut_into_sentences(
    drawn_pdf: DrawnPdf,
) -> None:
    page = [
        *lines(72, 713, "Lease of the mill and of the wheel, in two parts"),
        *[(72, 690, "1.", -10), (110, 690, "RENT", -10)],
        *[(72, 670, "1.1"), (110, 670, "The tenant pays forty marks. He pays in May")],
        *lines(110, 657, "and in July of each year."),
        *[(72, 637, "1.2"), (110, 637, "He keeps the roof dry and the wheel oiled.")],
        *[(72, 617, "(a)"), (110, 617, "the wheel house; and")],
        (72, 591, "1.2.1 any note of it, which is kept by the tenant;"),
        (72, 578, "1.2.2 any copy of it."),
        *[(72, 604, "7"), (110, 604, "12.50")],
    ]
    data = drawn_pdf([page])
    shown = f"|{'|'.join(results(read_bytes('a.pdf', data)))}|"
    assert "|1.1 The tenant pays forty marks.|He pays in May and in July of" in shown
    assert "|1.2 He keeps the roof dry and the wheel oiled.|" in shown
    assert "|7 12.50|" in shown
    assert "by the tenant;|1.2.2 any copy of it.|" in shown
    document = read_bytes("a.pdf", data)
    assert document.headings(document.text.index("1.1 The")) == ("1. RENT",)


def test_a_line_between_bold_words_is_no_heading(drawn_pdf: DrawnPdf) -> None:
    page = lines(72, 700, "This lease of the mill is made between Anne Reed and")
    words = ("[NAME]", "whose", "office", "is", "at", "the", "mill", "in", "[TOWN]")
    left = 72.0
    for word in words:
        size = -10 if word.startswith("[") else 10
        page.append((left, 674, word, size))
        left += 5.0 * len(word) + 2.8
    page += lines(72, 648, "It rained. Nobody came to the market.")
    document = read_bytes("a.pdf", drawn_pdf([page]))
    assert not [block for block in document.blocks if block.kind == "heading"]


def test_numbers_of_lines_stand_in_no_sentence(drawn_pdf: DrawnPdf) -> None:
    texts = (
        "Comes now the plaintiff, Anne Reed, and alleges that the",
        "defendant did not pay the rent of forty marks, which was due",
        "on the first of May. The defendant was asked three times.",
        "He did not answer. The plaintiff therefore asks the court to",
        "order him to pay.",
    )
    page: list[tuple[Any, ...]] = []
    for number, text in enumerate(texts):
        page += [(50, 700 - 24 * number, str(number + 7))]
        page += [(90, 700 - 24 * number, text)]
    document = read_bytes("a.pdf", drawn_pdf([page]))
    shown = results(document)
    assert "He did not answer." in shown
    assert "The plaintiff therefore asks the court to order him to pay." in shown
    assert document.notes == ("numbers of lines are left out (5)",)


def test_numbers_of_a_list_are_read(drawn_pdf: DrawnPdf) -> None:
    texts = ("Open the valve of it", "Wait for ten minutes", "Close it again, slowly")
    page: list[tuple[Any, ...]] = []
    for number, text in enumerate(2 * texts):
        page += [(50, 700 - 24 * number, str(number + 1))]
        page += [(90, 700 - 24 * number, text)]
    assert "|6 Close it again, slowly|" in drawn_results(drawn_pdf, page)
