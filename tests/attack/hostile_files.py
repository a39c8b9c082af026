"""Files of hostile shapes; a number scales the size of each."""

from collections.abc import Callable

from tests.word import a_list, docx, item, level, paragraph, table

BIG = "9" * 5000
START = '<w:start w:val="{}"/>'
SPAN = (
    "<w:tc><w:tcPr><w:gridSpan"
    ' w:val="999999999"/></w:tcPr><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc>'
)
FRACTION = "<m:f><m:num><m:r><m:t>a</m:t></m:r></m:num><m:den>{}</m:den></m:f>"
HALVES = f"<m:oMath>{FRACTION.format(FRACTION.format(FRACTION.format('')))}</m:oMath>"


def many_lists(n: int) -> bytes:
    numbers = a_list(level(0, "%1."), overrides=[""] * n)
    return docx("".join(item("a", of=1 + i) for i in range(n)), numbering=numbers)


def merged_rows(n: int) -> bytes:
    second_cell = f"<w:tc>{paragraph('b')}</w:tc>"
    merged_cell = "<w:tc><w:tcPr><w:vMerge/></w:tcPr></w:tc>"
    rest = f"<w:tr>{merged_cell}{second_cell}</w:tr>"
    first = f"<w:tr><w:tc>{paragraph('word ' * 300)}</w:tc>{second_cell}</w:tr>"
    return docx(table(first + rest * n))


def circle_of_styles(n: int) -> bytes:
    body = "".join(paragraph("a", f'<w:pStyle w:val="s{i}"/>') for i in range(n))
    style = '<w:style w:styleId="s{}"><w:basedOn w:val="s{}"/></w:style>'.format
    return docx(body, styles="".join(style(i, (i + 1) % n) for i in range(n)))


SHAPES: dict[str, Callable[[int], bytes | str]] = {
    "docx: level of a list": lambda n: docx(
        item("a", "30000000") * n + item("b", BIG), numbering=a_list(level(0, "%1."))
    ),
    "docx: number in Roman": lambda n: docx(
        item("a") * n,
        numbering=a_list(level(0, "%1" * 500, "upperRoman", START.format("999999999"))),
    ),
    "docx: number in letters": lambda n: docx(
        item("a") * n,
        numbering=a_list(level(0, "%1.", "lowerLetter", START.format(BIG))),
    ),
    "docx: lists": many_lists,
    "docx: relationships and files": lambda n: docx(
        paragraph("a"), relations='<Relationship Target="x"/>' * 10 * n, files=n
    ),
    "docx: merged columns": lambda n: docx(table(f"<w:tr>{SPAN * 2}</w:tr>" * n)),
    "docx: merged rows": merged_rows,
    "docx: styles in a circle": circle_of_styles,
    "docx: empty elements": lambda n: docx(paragraph("a") + "<a/>" * 10 * n),
    "docx: attributes": lambda n: docx(
        paragraph("a") + "<a " + " ".join(f"b{i}='1'" for i in range(n)) + "/>"
    ),
    "docx: deleted ends": lambda n: docx(paragraph("a", "<w:rPr><w:del/></w:rPr>") * n),
    "docx: formulas": lambda n: docx(f"<w:p>{HALVES * n}</w:p>"),
    "html: header of a long table": lambda n: (
        "<table><tr>" + "<th>column of data" * 30 + "<tr><td>a<td>b" * n + "</table>"
    ),
    "html: headers only": lambda n: "<table>" + "<tr><th>a<th>b" * n + "</table>",
    "html: merged columns": lambda n: (
        "<table>" + "<tr><td colspan=1000>a<td>b" * n + "</table>"
    ),
    "html: merged rows": lambda n: (
        "<table><tr><td rowspan=65534 colspan=1000>"
        + "word " * 300
        + "<tr><td>a" * n
        + "</table>"
    ),
    "html: small tables": lambda n: (
        "<table><tr><td colspan=1000 rowspan=9>a<td>b<tr></table>" * n
    ),
    "html: reversed lists": lambda n: (
        "<ol reversed start=99999999999999><li>a" * 20 + "<li>b" * n
    ),
    "html: numbers": lambda n: "<ol type=I start=3888><li value=999999999>a</ol>" * n,
    "html: formulas": lambda n: (
        "<math>" + "<mfrac><mn>1</mn>" * 300 + "<mn>2</mn>" * n + "</math>"
    ),
    "html: readings": lambda n: "<ruby>" + "a<rt>b</rt>" * n,
    "md: headings": lambda n: "# a\n" * n,
    "md: tables": lambda n: "|a\n|-\n|b\n" * n,
    "md: rows": lambda n: "|a|b\n|-|-\n" + "|x|y\n" * n,
    "md: short paragraphs": lambda n: "a\n\n" * n,
    "md: markers": lambda n: "- " * n + "a\n" + "> " * n + "a",
    "md: dashes": lambda n: "a|b\n" + "|-" * n,
    "md: one sign a line": lambda n: "\n".join(sign * n for sign in ">|#`[*"),
    "md: rules": lambda n: "- " * 20 * n + "a",
    "md: underlines": lambda n: "a\n" * n + "===\n",
    "html: quotation mark": lambda n: "<p a='" + "b " * n,
    "html: elements that overlap": lambda n: "<b><p>" * n,
    "html: rows that hang": lambda n: (
        "<table><tr><td rowspan=0>" + "abc" * 20 + "<td>b" + "<tr><td>c" * n
    ),
    "docx: text boxes": lambda n: docx(
        "<w:p><w:r><w:txbxContent>" * 60 + paragraph("a") * n
    ),
    "docx: names": lambda n: docx(
        paragraph("x") + "".join(f"<a{i}/>" for i in range(n))
    ),
    "csv: one line": lambda n: '1,"2",' * n,
    "log: one line": lambda n: "00:01 a " * n,
    "md: fences": lambda n: "> ```\n" * n,
    "csv: one column": lambda n: "a\n" * n,
    "csv: quotation marks": lambda n: 'a,"b\n' * n,
    "csv: long header": lambda n: "name of a column," * 40 + "end\n" + "1,2\n" * n,
    "log: indented lines": lambda n: "a\n" + " b\n" * n,
    "srt: times": lambda n: "00:00:01,000 --> 00:00:02,000\n" * n,
    "vtt: one speaker": lambda n: "00:01.000 --> 00:02.000\n<v Ann>a <v Bob" * n,
    "txt: names": lambda n: "00:01 " + "Ann " * n + "\n" + "00:01 Ann: a\n" * n,
    "html: classes": lambda n: f"<div class='{'cookie ' * n}'>a</div>",
}


def pdf_of_equal_pages(pages: int, lines: int) -> bytes:
    """A PDF of distinct pages that share one content."""
    shown = b"BT /F1 12 Tf 50 700 Td\n" + b"(Hello.) Tj 0 -14 Td\n" * lines + b"ET"
    page = (
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 3 0"
        b" R/Resources<</Font<</F1 4 0 R>>>>>>"
    )
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count %d/Kids[%s]>>"
        % (pages, b" ".join(b"%d 0 R" % (5 + n) for n in range(pages))),
        b"<</Length %d>>stream\n%s\nendstream" % (len(shown), shown),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        *[page] * pages,
    ]
    body, places = b"%PDF-1.7\n", []
    for number, each in enumerate(objects, start=1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (
        len(objects) + 1,
        len(body),
    )
    return body + b"xref\n0 %d\n0000000000 65535 f \n%s%s" % (
        len(objects) + 1,
        table,
        end,
    )


def hostile_file(shape: str, size: int) -> tuple[str, bytes]:
    """The name and content of a file.

    The word before the colon in its shape is its extension.
    """
    made = SHAPES[shape](size)
    return f"a.{shape.partition(':')[0]}", (
        made if isinstance(made, bytes) else made.encode()
    )
