"""DOCX: text, list numbers as Word shows them, tables, formulas, symbols, changes.

Broken files and bombs.
"""

import io
import zipfile
from collections.abc import Sequence

import pytest

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.docx import read_docx
from spscanner_rag.files.readers.zip_parts import MOST_XML_BYTES
from tests.files.readers.test_html import blocks as blocks_of
from tests.word import (
    HEADING,
    HEADINGS,
    WORD,
    a_list,
    cell,
    docx,
    item,
    level,
    paragraph,
    row,
    table,
)

BOLD, SHADED = (
    "<w:rPr><w:b/></w:rPr>",
    '<w:tcPr><w:shd w:val="clear" w:fill="D9D9D9"/></w:tcPr>',
)


def read(body: str, **settings: str) -> TextFile:
    return read_docx(docx(body, **settings))  # type: ignore[arg-type]


def test_a_contract() -> None:
    body = (
        paragraph("Terms", HEADING(1))
        + paragraph("The parties agree.")
        + "<w:p><w:ins><w:r><w:t>Inserted. </w:t></w:r></w:ins>"
        "<w:del><w:r><w:delText>Gone.</w:delText></w:r></w:del><w:r><w:t>Kept.</w:t>"
        "</w:r></w:p>"
        + f"<w:sdt><w:sdtContent>{paragraph('In a content control.')}</w:sdtContent>"
        f"</w:sdt>"
        + paragraph("Prices", HEADING(2))
        + table(
            row("Item", "Price", properties="<w:tblHeader/>"), row("Nut", "3 &amp; 4")
        )
    )
    found = read(body, styles=HEADINGS)
    assert (
        found.text
        == "Terms\n\nThe parties agree.\n\nInserted. Kept.\n\nIn a content control.\n\n"
        "Prices\n\nItem | Price\nNut | 3 & 4"
    )
    shown = [
        (block.kind, found.text[block.start : block.end], block.level)
        for block in found.blocks
    ]
    assert shown == [
        ("heading", "Terms", 1),
        ("heading", "Prices", 2),
        ("header", "Item | Price", 0),
        ("row", "Nut | 3 & 4", 0),
    ]


def test_lists_notes_text_boxes_and_hidden_text() -> None:
    box = f"<w:txbxContent>{paragraph('In a box.')}</w:txbxContent>"
    alternate = "http://schemas.openxmlformats.org/markup-compatibility/2006"
    body = (
        f"{item('one')}{item('inner', 1) * 2}{item('two')}{item('dash', of=2)}"
        "<w:p"
        f' xmlns:mc="{alternate}"><w:r><mc:AlternateContent><mc:Choice>{box}'
        f"</mc:Choice>"
        f"<mc:Fallback>{box}</mc:Fallback></mc:AlternateContent></w:r><w:r><w:t>Beside"
        " it.</w:t></w:r></w:p>"
        "<w:p><w:r><w:rPr><w:vanish/></w:rPr><w:t>no</w:t></w:r>"
        "<w:r><w:t>Seen.</w:t><w:br/><w:t>Below.</w:t></w:r></w:p>"
        + table(row(f"<w:tc>{paragraph('a')}{table(row('b', 'c'))}</w:tc>", "d"))
        + paragraph("A style that is based on a heading", '<w:pStyle w:val="Own"/>')
    )
    numbering = a_list('<w:lvl w:ilvl="0"/>', '<w:lvl w:ilvl="1"/>')
    styles = HEADINGS + '<w:style w:styleId="Own"><w:basedOn w:val="H1"/></w:style>'
    found = read(
        body, styles=styles, numbering=numbering, footnotes=paragraph("A note.")
    )
    assert found.text.split("\n\n") == [
        "1. one",
        "1.1. inner",
        "1.2. inner",
        "2. two",
        "- dash",
        "In a box.",
        "Beside it.",
        "Seen.\nBelow.",
        "a b c | d",
        "A style that is based on a heading",
        "A note.",
    ]
    assert [block.kind for block in found.blocks] == ["row", "heading"]


def test_another_name_of_the_main_part_and_the_strict_form() -> None:
    made, strict = io.BytesIO(), b"http://purl.oclc.org/ooxml/wordprocessingml/main"
    with (
        zipfile.ZipFile(io.BytesIO(docx(paragraph("Text.")))) as old,
        zipfile.ZipFile(made, "w") as new,
    ):
        for name in old.namelist():
            part = old.read(name).replace(b"word/document.xml", b"word/document2.xml")
            part = part.replace(WORD.encode(), strict)
            new.writestr(name.replace("document.xml", "document2.xml"), part)
    assert read_docx(made.getvalue()).text == "Text."


def test_a_broken_file_is_told_in_one_line() -> None:
    whole = docx(paragraph("Text."))
    for data in (whole[:200], whole[:-30], docx("<w:p>"), docx(main="no")):
        with pytest.raises(
            ValueError, match=r"^got a DOCX that cannot be read \(.*expected a complete"
        ) as told:
            read_docx(data)
        assert "\n" not in str(told.value)


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    data = docx(paragraph("a" * (MOST_XML_BYTES + 1)))
    assert len(data) < 200_000
    with pytest.raises(
        ValueError, match=r"^got parts that unpack to 32 MiB; expected at most 32 MiB"
    ):
        read_docx(data)


def test_a_bomb_that_lies_about_its_size_is_broken() -> None:
    data = bytearray(docx(paragraph("a" * 5_000_000)))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        size = archive.getinfo("word/document.xml").file_size
    data = data.replace(size.to_bytes(4, "little"), (1_000).to_bytes(4, "little"))
    with pytest.raises(ValueError, match="cannot be read"):
        read_docx(bytes(data))


def test_entities_do_not_grow() -> None:
    entities = '<!ENTITY a0 "aaaaaaaaaa">' + "".join(
        f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10)
    )
    document = docx()
    with zipfile.ZipFile(io.BytesIO(document)) as archive:
        empty = archive.read("word/document.xml").decode()
    laughing = f"<!DOCTYPE w [{entities}]>" + empty.replace(
        "<w:body>", f"<w:body>{paragraph('&a9;')}"
    )
    with pytest.raises(ValueError, match="cannot be read"):
        read_docx(docx(main=laughing))


ONE_TO_THREE = item("a") + item("b", 1) + item("c", 1) + item("d") + item("e", 1)


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        (
            [level(0, "%1)"), level(1, "(%2)", "lowerLetter")],
            ["1) a", "(a) b", "(b) c", "2) d", "(a) e"],
        ),
        (
            [
                level(0, "Article %1", "upperRoman"),
                level(1, "§%1.%2", more="<w:isLgl/>"),
            ],
            ["Article I a", "§1.1 b", "§1.2 c", "Article II d", "§2.1 e"],
        ),
        (
            [
                level(0, "%1.", more='<w:start w:val="5"/>'),
                level(1, "%1-%2", "decimalZero"),
            ],
            ["5. a", "5-01 b", "5-02 c", "6. d", "6-01 e"],
        ),
        (
            [
                level(0, "%1:", "ordinalText"),
                level(1, "%2", more='<w:lvlRestart w:val="0"/>'),
            ],
            ["1: a", "1 b", "2 c", "2: d", "3 e"],
        ),
        (
            [level(0, "", "none"), level(1, "\uf0b7", "bullet")],
            ["a", "- b", "- c", "d", "- e"],
        ),
    ],
)
def test_numbers_are_as_word_shows_them(
    levels: Sequence[str], expected: list[str]
) -> None:
    assert read(ONE_TO_THREE, numbering=a_list(*levels)).text.split("\n\n") == expected


def test_lists_of_one_definition_go_on_unless_they_say_where_they_start() -> None:
    start = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="{}"/></w:lvlOverride>'
    body = (
        item("a")
        + item("b", of=2)
        + item("")
        + item("c", of=3)
        + item("d", of=3)
        + item("e", of=4)
    )
    numbering = a_list(
        level(0, "%1."), overrides=["", "", start.format(1), start.format(9)]
    )
    found = read(body, numbering=numbering)
    assert found.text.split("\n\n") == ["1. a", "2. b", "1. c", "2. d", "9. e"]


def test_numbers_of_styles_stand_before_headings() -> None:
    own = '<w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
    numbering = a_list(
        level(0, "Part %1", "upperLetter", '<w:pStyle w:val="H1"/>'),
        level(1, "%1.%2", more='<w:pStyle w:val="H2"/>'),
    )
    off = HEADING(1) + '<w:numPr><w:numId w:val="0"/></w:numPr>'
    texts = (
        ("Terms", HEADING(1)),
        ("Rent", HEADING(2)),
        ("Term", HEADING(2)),
        ("No", off),
        ("End", HEADING(1)),
    )
    body = "".join(paragraph(*each) for each in texts)
    found = read(body, styles=HEADINGS.replace("</w:style>", own), numbering=numbering)
    assert [
        block.title for block in found.blocks
    ] == "Part A Terms|A.1 Rent|A.2 Term|No|Part B End".split("|")


LABELS = [("Tenant", "Anne Reed"), ("Signed on", "3 May 1811"), ("Rent", "40 marks")]
STYLE = (
    '<w:style w:type="table" w:styleId="Plain"/><w:style w:type="table"'
    ' w:styleId="Striped"><w:basedOn w:val="Plain"/><w:tblStylePr'
    ' w:type="firstRow"><w:rPr><w:b/></w:rPr></w:tblStylePr></w:style>'
)
LOOK = '<w:tblStyle w:val="{}"/><w:tblLook w:val="04A0"/>'


@pytest.mark.parametrize(
    ("made", "headers"),
    [
        (table(*(row(*cells) for cells in LABELS)), []),
        (table(*(row(cell(name, run=BOLD), value) for name, value in LABELS)), []),
        (
            table(*(row(*cells) for cells in LABELS), properties=LOOK.format("Plain")),
            [],
        ),
        (
            table(
                *(row(*(cell(text, run=BOLD) for text in cells)) for cells in LABELS)
            ),
            [],
        ),
        (
            table(
                row(cell("Rent:", run=BOLD), cell("40", run=BOLD)), row("Due:", "May")
            ),
            [],
        ),
        (
            table(
                row(cell("T", '<w:gridSpan w:val="2"/>', BOLD)),
                row(cell("Name", run=BOLD), cell("Value", run=BOLD)),
                row(*LABELS[0]),
            ),
            ["Name | Value"],
        ),
        (table(row("For the council: Bob", "For the tenant: Anne")), []),
        (table(row("Only", "headers", properties="<w:tblHeader/>")), []),
        (
            table(row("Name", "Value", properties="<w:tblHeader/>"), row(*LABELS[0])),
            ["Name | Value"],
        ),
        (
            table(
                row(cell("Name", run=BOLD), cell("Value", run=BOLD)), row(*LABELS[0])
            ),
            ["Name | Value"],
        ),
        (
            table(
                row(cell("Name", SHADED[8:-9]), cell("Value", SHADED[8:-9])),
                row(*LABELS[0]),
            ),
            ["Name | Value"],
        ),
        (
            table(
                row("Name", "Value"), row(*LABELS[0]), properties=LOOK.format("Striped")
            ),
            ["Name | Value"],
        ),
    ],
)
def test_a_header_is_marked_or_looks_so(made: str, headers: list[str]) -> None:
    found = read(paragraph("Lease.") + made, styles=STYLE)
    spans = [block.header for block in found.blocks if block.header]
    read_with = [found.text[start:end] for start, end in dict.fromkeys(spans)]
    assert read_with == headers
    assert bool(found.blocks[-1].header) == bool(headers)


def test_struck_text_is_marked_and_runs_are_one() -> None:
    struck = "<w:rPr><w:strike/></w:rPr>"
    runs = "".join(f"<w:r>{struck}<w:t>{text}</w:t></w:r>" for text in ("for", "ty"))
    found = read(f"<w:p>{runs}<w:r><w:t xml:space='preserve'> fifty</w:t></w:r></w:p>")
    assert found.text == "~~forty~~ fifty"


def test_a_first_row_that_may_name_columns_is_read_with_the_others_and_is_a_unit() -> (
    None
):
    found = read(
        table(
            row("Part", "Maker", "Price"),
            row("Valve", "Hale", "12"),
            row("Pump", "Reed", "9"),
        )
    )
    assert [kind for kind, _ in blocks_of(found)] == ["row", "row", "row"]
    assert [block.header for block in found.blocks] == [None, (0, 20), (0, 20)]
    found = read(table(row("Anne", "12", "Riga"), row("Bob", "13", "Lyme")))
    assert [block.header for block in found.blocks] == [None, None]


def test_a_header_of_two_rows_and_merged_cells() -> None:
    mark, down, on, two = (
        "<w:tblHeader/>",
        '<w:vMerge w:val="restart"/>',
        "<w:vMerge/>",
        '<w:gridSpan w:val="2"/>',
    )
    made = table(
        row(cell("City", down), cell("People", two), properties=mark),
        row(cell("", on), "1990", "2000", properties=mark),
        row(cell("Riga", down), "910", "760"),
        row(cell("", on), "911", "761"),
        row(cell("All", two), "3"),
        row("7", "8", properties='<w:gridBefore w:val="1"/>'),
    )
    found = read(made)
    assert found.text.split("\n") == [
        "City | People |",
        "City | 1990 | 2000",
        "Riga | 910 | 760",
        "Riga | 911 | 761",
        "All |  | 3",
        "| 7 | 8",
    ]
    assert [block.kind for block in found.blocks] == ["header", *["row"] * 4]


def math(body: str) -> str:
    return (
        "<w:p><w:r><w:t xml:space='preserve'>Let"
        f" </w:t></w:r><m:oMath>{body}</m:oMath></w:p>"
    )


def m(text: str) -> str:
    return f"<m:r><w:rPr><w:i/></w:rPr><m:t>{text}</m:t></m:r>"


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (m("q=4"), "q=4"),
        (
            f"{m('y=')}<m:f><m:fPr/><m:num>{m('a+b')}</m:num><m:den>{m('2')}</m:den>"
            f"</m:f>",
            "y=(a+b)/2",
        ),
        (
            f"<m:sSup><m:e>{m('r')}</m:e><m:sup>{m('2')}</m:sup></m:sSup>{m('&lt;9')}",
            "r^2<9",
        ),
        (f"<m:sSub><m:e>{m('v')}</m:e><m:sub>{m('0')}</m:sub></m:sSub>", "v_0"),
        (
            f"<m:rad><m:radPr><m:degHide/></m:radPr><m:deg/><m:e>{m('x+1')}</m:e>"
            f"</m:rad>",
            "√(x+1)",
        ),
        (
            f'<m:d><m:dPr><m:begChr m:val="["/><m:endChr m:val="]"/></m:dPr>'
            f"<m:e>{m('a')}</m:e></m:d>",
            "[a]",
        ),
        (
            f'<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub>{m("i")}</m:sub>'
            f"<m:e>{m('k')}</m:e></m:nary>",
            "∑_i k",
        ),
        (
            f"<m:nary><m:naryPr/><m:sub>{m('0')}</m:sub><m:sup>{m('n+1')}</m:sup>"
            f"<m:e>{m('k')}</m:e></m:nary>",
            "∫_0^(n+1) k",
        ),
        (
            f"<m:limLow><m:e>{m('lim')}</m:e><m:lim>{m('n→9')}</m:lim></m:limLow>",
            "lim_(n→9)",
        ),
        (
            f"<m:acc><m:accPr/><m:e>{m('y')}</m:e></m:acc><m:bar><m:e>{m('z')}</m:e>"
            f"</m:bar>",
            "y\u0302z\u0305",
        ),
    ],
)
def test_formulas_are_text(formula: str, expected: str) -> None:
    assert read(math(formula)).text == f"Let {expected}"
    para = f"<w:p><m:oMathPara><m:oMath>{formula}</m:oMath></m:oMathPara></w:p>"
    assert read(table(row("a", f"<w:tc>{para}</w:tc>"))).text == f"a | {expected}"


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        (
            '<w:r><w:sym w:font="Wingdings" w:char="F0FC"/><w:t> done</w:t></w:r>',
            "✓ done",
        ),
        (
            '<w:r><w:t>at 3 </w:t><w:sym w:font="Symbol" w:char="F06D"/><w:t>m</w:t>'
            "</w:r>",
            "at 3 μm",
        ),
        (
            '<w:r><w:t>x </w:t><w:sym w:font="Symbol" w:char="F0B3"/><w:t> 2</w:t>'
            "</w:r>",
            "x ≥ 2",
        ),
        ('<w:r><w:sym w:font="Arial" w:char="20AC"/><w:t>5</w:t></w:r>', "€5"),
        (
            '<w:r><w:rPr><w:rFonts w:ascii="Symbol"/></w:rPr><w:t>&#xF062;=</w:t>'
            "</w:r>",
            "β=",
        ),
        (
            '<w:r><w:t>10</w:t></w:r><w:r><w:rPr><w:vertAlign w:val="superscript"/>'
            "</w:rPr><w:t>-3</w:t></w:r>",
            "10⁻³",
        ),
        (
            '<w:r><w:sym w:font="Odd" w:char="F123"/><w:sym w:font="Odd"'
            ' w:char="no"/></w:r>',
            "\ufffd\ufffd",
        ),
    ],
)
def test_symbols(runs: str, expected: str) -> None:
    assert read(f"<w:p>{runs}</w:p>").text == expected


def ruby(base: str, reading: str) -> str:
    text = "<w:r><w:t>{}</w:t></w:r>".format
    both = f"<w:rt>{text(reading)}</w:rt><w:rubyBase>{text(base)}</w:rubyBase>"
    return f"<w:r><w:ruby><w:rubyPr/>{both}</w:ruby></w:r>"


def test_readings_stand_behind_their_word() -> None:
    osaka = ruby("大", "おお") + ruby("阪", "さか")
    town = ruby("町", "まち")
    body = f"<w:p>{osaka}<w:r><w:t>へ行く</w:t></w:r>{town}</w:p>"
    assert read(body).text == "大阪(おおさか)へ行く町(まち)"


GONE = '<w:rPr><w:del w:id="1" w:author="a"/></w:rPr>'
TEXT = "<w:r><w:t xml:space='preserve'>{}</w:t></w:r>".format


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (paragraph("The mill ", GONE) + paragraph("is sold."), "The mill is sold."),
        (
            paragraph("a", GONE)
            + paragraph("b", GONE)
            + paragraph("c")
            + paragraph("d"),
            "abc\n\nd",
        ),
        (
            f"<w:p><w:pPr>{GONE}</w:pPr><w:del>{TEXT('x')}</w:del></w:p>"
            + paragraph("y"),
            "y",
        ),
        (
            table(row(f"<w:tc>{paragraph('last', GONE)}</w:tc>", "b")) + paragraph("c"),
            "last | b\n\nc",
        ),
        (
            table(row("a", "b"), row("c", "d", properties="<w:del/>"), row("e", "f")),
            "a | b\ne | f",
        ),
        (
            paragraph(
                "now",
                "<w:pPrChange><w:pPr><w:pStyle w:val='H1'/></w:pPr></w:pPrChange>",
            ),
            "now",
        ),
        (
            paragraph("moved", "<w:rPr><w:moveFrom/></w:rPr>") + paragraph(" on"),
            "moved on",
        ),
        (paragraph("end", GONE), "end"),
    ],
)
def test_deleted_ends_and_rows(body: str, expected: str) -> None:
    found = read(body, styles=HEADINGS)
    assert found.text == expected
    assert not [block for block in found.blocks if block.kind == "heading"]


def test_text_of_a_hidden_style_is_hidden() -> None:
    styles = '<w:style w:styleId="Secret"><w:rPr><w:vanish/></w:rPr></w:style>'
    hidden = '<w:rPr><w:rStyle w:val="Secret"/></w:rPr>'
    assert (
        read(paragraph("no", run=hidden) + paragraph("yes"), styles=styles).text
        == "yes"
    )
