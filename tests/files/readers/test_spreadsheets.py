import datetime

import pytest
from hypothesis import given, settings

from spscanner_rag.files.reading import read_bytes
from tests.small_files import (
    SHEET,
    assert_all_read,
    ods,
    relations,
    sheet_row,
    texts_of_words,
    xlsx,
)

pytest.importorskip("python_calamine", reason="the extra files is not installed")
pytest.importorskip("lxml", reason="the extra files is not installed")

from spscanner_rag.files.readers import spreadsheets
from spscanner_rag.files.readers.spreadsheets import (
    MOST_CELLS,
    is_ods,
    is_xlsx,
    read_spreadsheet,
    shown_value,
)

COSTS = (
    sheet_row(1, "Costs of the harbour")
    + sheet_row(3, "Part", "Price", "Share")
    + sheet_row(4, "Rope", "120 marks", 0.25, style=1)
    + sheet_row(5, "Sail", 3.5)
)
PERCENT = "<cellXfs><xf numFmtId='0'/><xf numFmtId='9'/></cellXfs>"


def test_a_row_is_a_unit_with_its_head_and_cells() -> None:
    document = read_spreadsheet(xlsx({"Costs": COSTS}, styles=PERCENT))
    assert document.text == (
        "Costs\n\nCosts of the harbour\n\nPart | Price | Share\n"
        "Rope | 120 marks | 25%\nSail | 3.5"
    )
    head = document.text.index("Part"), document.text.index("\nRope")
    rows = [block for block in document.blocks if block.kind == "row"]
    assert [row.header for row in rows] == [None, head, head]
    assert document.place_name(rows[1].start) == "sheet Costs, cells A4:C4"
    title = document.text.index("Costs of")
    assert document.place_name(title) == "sheet Costs, cell A1"


@given(texts_of_words(min_size=1, max_size=12))
@settings(max_examples=10, deadline=None)
def test_every_value_is_in_a_unit(texts: list[str]) -> None:
    rows = [texts[start : start + 3] for start in range(0, len(texts), 3)]
    assert_all_read(read_spreadsheet(ods({"Log": rows})), [*texts, "Log"])
    sheet = [sheet_row(number, *row) for number, row in enumerate(rows, start=1)]
    assert_all_read(read_spreadsheet(xlsx({"Log": "".join(sheet)})), texts)


def test_a_sparse_sheet_is_named_and_the_others_are_read() -> None:
    far = '<row r="1048576"><c r="XFD1048576"><v>2</v></c></row>'
    data = xlsx({"Far": sheet_row(1, 1) + far, "Near": sheet_row(1, "Rope")})
    document = read_bytes("costs.xlsx", data)
    assert document.text == "Near\n\nRope"
    (note,) = document.notes
    assert "sheet Far is left out" in note
    assert f"{MOST_CELLS:,}" in note


def test_what_is_not_read_has_a_note() -> None:
    sheets = {"Open": sheet_row(1, "Rope"), "Secret": sheet_row(1, "Gold")}
    sheets["Open"] += '<row r="2"><c r="A2" t="e"><v>#REF!</v></c></row>'
    document = read_spreadsheet(xlsx(sheets, states={"Secret": "hidden"}))
    assert "Gold" not in document.text
    assert document.notes == (
        "sheet Open: 1 cells that show an error are left out",
        "sheet Secret is hidden, and left out",
    )


def test_comments_and_text_boxes_are_read() -> None:
    comments = (
        f'<comments xmlns="{SHEET}"><commentList><comment ref="B7"><text><r>'
        "<t>Ask Anne.</t></r></text></comment></commentList></comments>"
    )
    drawing = '<d xmlns:a="a"><a:txBody><a:p><a:r><a:t>Note well.</a:t></a:r></a:p>'
    parts = {
        "xl/comments1.xml": comments,
        "xl/drawings/drawing1.xml": f"{drawing}</a:txBody></d>",
        "xl/worksheets/_rels/sheet1.xml.rels": relations(
            ("c", "comments", "../comments1.xml"),
            ("d", "drawing", "../drawings/drawing1.xml"),
        ),
    }
    document = read_spreadsheet(xlsx({"Log": sheet_row(1, "Rope")}, parts=parts))
    where = document.place_name(document.text.index("Ask Anne."))
    assert where == "sheet Log, comment on cell B7"
    assert "Note well." in document.text


@pytest.mark.parametrize("data", [xlsx({"a": "<row"}), xlsx({})[:-40]])
def test_a_broken_workbook_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="workbook"):
        read_spreadsheet(data)


def test_a_bomb_is_refused() -> None:
    data = xlsx({"a": sheet_row(1, "x")}, parts={"xl/big.xml": " " * 2**22})
    # the size that the archive claims for the part
    claimed = data.replace((2**22).to_bytes(4, "little"), (2**30).to_bytes(4, "little"))
    with pytest.raises(ValueError, match="unpack to 1,024 MiB"):
        read_spreadsheet(claimed)


def test_dates_are_shown_as_dates() -> None:
    styles = "<cellXfs><xf numFmtId='0'/><xf numFmtId='14'/></cellXfs>"
    data = xlsx({"Log": sheet_row(1, 45000, style=1)}, styles=styles)
    assert read_spreadsheet(data).text == "Log\n\n2023-03-15"


def test_charts_and_diagrams_of_a_sheet_are_read() -> None:
    chart = (
        '<c:chart xmlns:c="c" xmlns:a="a"><c:title><a:p><a:r><a:t>Rain</a:t></a:r>'
        "<a:br/><a:r><a:t>in</a:t></a:r><a:tab/><a:r><a:t>May</a:t></a:r></a:p><a:p/>"
        "</c:title><c:ser><c:tx><c:v>Days</c:v></c:tx><c:cat><c:v>north</c:v><c:v>south</c:v>"
        "<c:v> </c:v></c:cat><c:val><c:v>3</c:v></c:val></c:ser>"
        "<c:ser><c:xVal><c:v>1</c:v></c:xVal><c:yVal><c:v>2</c:v><c:v>4</c:v></c:yVal>"
        "</c:ser><c:ser/></c:chart>"
    )
    diagram = '<d xmlns:a="a"><a:p><a:r><a:t>Step one.</a:t></a:r></a:p></d>'
    parts = {
        "xl/charts/chart1.xml": chart,
        "xl/diagrams/data1.xml": diagram,
        "xl/media/a.xml": "<a/>",
        "xl/drawings/drawing1.xml": "<d/>",
        "xl/drawings/_rels/drawing1.xml.rels": relations(
            ("c", "chart", "../charts/chart1.xml"),
            ("d", "diagramData", "../diagrams/data1.xml"),
            ("m", "image", "../media/a.xml"),
        ),
        "xl/worksheets/_rels/sheet1.xml.rels": relations(
            ("d", "drawing", "../drawings/drawing1.xml")
        ),
    }
    document = read_spreadsheet(xlsx({"Log": sheet_row(1, "Rope")}, parts=parts))
    assert document.text == (
        "Log\n\nRope\n\nRain\nin May\n\nDays: north: 3, south\n\n1: 2, 4\n\nStep one."
    )
    where = document.place_name(document.text.index("Step"))
    assert where == "sheet Log, a drawing"


def test_a_long_row_has_a_place_for_each_cell_and_an_empty_one_shows_none() -> None:
    longest = "rope " * 900
    rows = sheet_row(1, longest, "sail") + sheet_row(2, "a", *[None] * 9, "b")
    document = read_spreadsheet(xlsx({"Log": rows}))
    assert document.place_name(document.text.index("sail")) == "sheet Log, cell B1"
    assert document.text.endswith("\na | b")


def test_a_long_sheet_is_cut_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spreadsheets, "MOST_CHARACTERS", 8)
    rows = "".join(sheet_row(number, "rope", "sail") for number in range(1, 5))
    document = read_spreadsheet(xlsx({"Log": rows}))
    assert document.text.count("rope") == 2
    assert document.notes == (
        "sheet Log: row 3 and those below are left out, after 8 characters",
    )


def test_formats_of_a_workbook_that_show_a_percentage() -> None:
    styles = (
        '<numFmts><numFmt numFmtId="170" formatCode="0.0%"/><numFmt numFmtId="171"'
        ' formatCode="0.0"/></numFmts><cellXfs><xf numFmtId="171"/><xf numFmtId="170"/>'
        "</cellXfs>"
    )
    rows = sheet_row(1, 0.125, style=1) + sheet_row(2, 0.5)
    rows += '<row r="3"><c r="A3" s="1" t="b"><v>1</v></c></row>'
    document = read_spreadsheet(xlsx({"Log": rows}, styles=styles))
    assert document.text == "Log\n\n12.5%\n\n0.5\n\nTRUE"


def test_times_are_shown_with_their_date() -> None:
    morning = datetime.datetime(1811, 3, 4, 6, 30)
    assert shown_value(morning) == "1811-03-04 06:30:00"
    assert shown_value(datetime.datetime(1811, 3, 4)) == "1811-03-04"


@pytest.mark.parametrize(
    ("data", "old", "new"),
    [
        (b"\xd0\xcf\x11\xe0" + "Workbook".encode("utf-16-le"), True, False),
        (b"\xd0\xcf\x11\xe0" + "EncryptWorkbook".encode("utf-16-le"), False, False),
        (b"PK\x03\x04", False, False),
        (ods({"a": [["b"]]}), False, True),
    ],
)
def test_what_is_a_workbook(data: bytes, old: bool, new: bool) -> None:
    assert (is_xlsx(data), is_ods(data)) == (old, new)


def test_an_old_workbook_that_is_broken_is_refused() -> None:
    data = b"\xd0\xcf\x11\xe0" + "Workbook".encode("utf-16-le") * 100
    with pytest.raises(ValueError, match="workbook"):
        read_spreadsheet(data)
