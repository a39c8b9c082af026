"""Documents in XML: what a reader of the document sees, in order."""

import pytest
from hypothesis import given, settings

from tests.small_files import assert_all_read, texts_of_words

pytest.importorskip("lxml", reason="the extra files is not installed")

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.xml_records import read_xml

ARTICLE = """<?xml version="1.0"?>
<article xmlns:mml="http://www.w3.org/1998/Math/MathML" article-type="research">
<front><article-meta><article-id pub-id-type="doi">10.1/x</article-id>
<title-group><article-title>Milk and <italic>methane</italic></article-title>
</title-group><contrib><name><surname>Lee</surname><given-names>H. M.</given-names>
</name></contrib><pub-date><day>3</day><year>2020</year></pub-date></article-meta>
</front><body><sec id="s1" sec-type="intro"><label>1</label><title>Aims</title>
<p>CO<sub>2</sub> rose<xref rid="r1">[1]</xref>.<fn><p>In all <b>herds</b>.</p></fn>
See: <list><list-item><p>dry matter</p></list-item><list-item><p>energy, as
<disp-formula><alternatives><graphic href="a.png"/><mml:math><mml:mfrac>
<mml:mi>a</mml:mi><mml:mi>b</mml:mi></mml:mfrac></mml:math></alternatives>
</disp-formula> says</p></list-item></list> That is all.</p>
<table-wrap id="t1"><label>Table 1</label><caption><title>The herd.</title></caption>
<table frame="hsides"><thead><tr><th align="left">Item</th><th>Unit</th><th>Mean</th>
</tr></thead><tbody><tr><td rowspan="2">Milk</td><td>kg year<sup>-1</sup></td>
<td>7,015</td></tr><tr><td>% <italic>fat</italic></td><td>4.0</td></tr></tbody>
</table></table-wrap></sec></body><back><ref-list><title>References</title>
<ref id="r1"><label>1</label><mixed-citation><name><surname>Kim</surname>
<given-names>J</given-names></name>, <name><surname>Roe</surname>
<given-names>A</given-names></name>. Cows. 2019.</mixed-citation>
</ref></ref-list></back></article>
"""


def read(source: str) -> TextFile:
    return read_xml(source.encode())


def test_an_article_is_read_as_it_is_printed() -> None:
    document = read(ARTICLE.replace("</surname>\n<", "</surname><"))
    assert document.text == (
        "article-id: 10.1/x\n\nMilk and methane\n\n"
        "surname: Lee | given-names: H. M.\nday: 3 | year: 2020\n\n"
        "1 Aims\n\nCO2 rose[1].[1] See:\n\n[1] In all herds.\n\ndry matter\n\n"
        "energy, as\n\na/b\n\nsays\n\nThat is all.\n\n"
        "Table 1 The herd.\n\nItem | Unit | Mean\nMilk | kg year-1 | 7,015\n"
        "Milk | % fat | 4.0\n\nReferences\n\n1 Kim J, Roe A. Cows. 2019."
    )
    headings = [block.title for block in document.blocks if block.kind == "heading"]
    assert headings == ["Milk and methane", "1 Aims", "References"]
    assert document.notes == ("attributes of a document are left out (11)",)
    place = document.place_name(document.text.index("That is all"))
    assert place == "/article/body/sec/p"


def test_cells_are_read_with_the_names_of_their_columns() -> None:
    document = read(ARTICLE)
    row = next(
        block for block in document.blocks if block.kind == "row" and block.header
    )
    assert row.header is not None
    start, end = row.header
    assert document.text[start:end] == "Item | Unit | Mean"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            "<TEI><head>No</head><text><body><div><head n='1'>Aim</head><p><s c='1'>"
            "One.</s><s>Two.</s></p><figure><head>Table 1</head><table>"
            "<row role='label'><cell>Item</cell><cell>Unit</cell></row>"
            "<row><cell>Milk</cell><cell>kg</cell></row></table></figure></div></body></text></TEI>",
            "No\n\nAim\n\nOne. Two.\n\nTable 1\n\nItem | Unit\nMilk | kg",
        ),
        (
            "<book><chapter><title>Run</title><para>Type:<programlisting>if a:\n  b"
            "</programlisting></para><informaltable><tgroup cols='2'><colspec/><thead>"
            "<row><entry>Key</entry><entry>Use</entry></row></thead><tbody><row><entry>"
            "<para>q</para></entry><entry><para>quits</para></entry></row></tbody>"
            "</tgroup></informaltable></chapter></book>",
            "Run\n\nType:\n\nif a:\n  b\n\nKey | Use\nq | quits",
        ),
        (
            "<FictionBook><body><section><title><p>One</p></title><p>It rained.</p>"
            f"</section></body><binary id='a'>{'QUJD' * 100}</binary></FictionBook>",
            "One\n\nIt rained.",
        ),
        (
            "<article><sec><title>Sum</title><p>So <tex-math>\\usepackage{x}\\begin"
            "{document}$$a_1$$\\end{document}</tex-math> holds.</p></sec></article>",
            "Sum\n\nSo a_1 holds.",
        ),
        (
            "<article><sec><title>Pic</title><p>See it.</p><fig><graphic alt='A cow'/>"
            "</fig><label>9</label></sec></article>",
            "Pic\n\nSee it.\n\nA cow\n\n9",
        ),
    ],
    ids=["TEI", "DocBook", "FictionBook", "TeX", "words in attributes"],
)
def test_documents_of_other_kinds(source: str, text: str) -> None:
    assert read(source).text == text


def test_data_with_few_paragraphs_keeps_its_attributes() -> None:
    shop = "<shop><item price='3'><name>Cup</name><p>It is blue.</p></item></shop>"
    assert "price: 3" in read(shop).text


@given(texts_of_words(min_size=2, max_size=6))
@settings(max_examples=15, deadline=None)
def test_every_word_is_in_a_unit(texts: list[str]) -> None:
    fields = "".join(
        f"<f{number}>{text}</f{number}>" for number, text in enumerate(texts)
    )
    mixed = " ".join(f"{text} <x><y>{text}</y></x> {text}" for text in texts)
    items = "".join(f"<li><p>{text}</p>{text}</li>" for text in texts)
    cells = "".join(f"<td>{text}<p>{text}</p></td>" for text in texts)
    source = (
        f"<article><sec><title>{texts[0]}</title><p>{mixed}</p><r>{fields}</r>"
        f"<p>{texts[1]}<ul>{items}</ul></p><table><caption>{texts[0]}</caption>"
        f"<tr>{cells}</tr><tr>{cells}</tr></table></sec></article>"
    )
    assert_all_read(read(source), texts * 10 + texts[:1] * 2 + texts[1:2])


def test_one_of_several_forms_is_read() -> None:
    forms = (
        "<alternatives><tex-math>$b$</tex-math><math><mi>b</mi></math></alternatives>"
    )
    document = read(
        f"<article><p>So {forms} holds.</p><disp-formula>{forms}</disp-formula>"
        "<p>See <alternatives><q>a</q><q>c</q></alternatives>.</p></article>"
    )
    assert document.text == "So b holds.\n\nb\n\nSee a."


def test_entities_are_shown_by_name_everywhere() -> None:
    table = "<table>&e;<tr><td>&e; 1</td>&e;<td>2</td></tr></table>"
    document = read(
        "<!DOCTYPE article [<!ENTITY e 'x'>]><article><p>&e; is</p>&e;"
        f"<sec><title>&e;</title>&e;{table}<r><f>&e;</f></r></sec></article>"
    )
    assert document.text.count("&e;") == 7


def test_entities_in_formulas_are_shown_by_name() -> None:
    formula = "<math>&e;<mi>a</mi><mfrac><mi>&e;</mi><mi>b</mi></mfrac></math>"
    document = read(
        f"<!DOCTYPE article [<!ENTITY e 'x'>]><article><p>So {formula} is it.</p>"
        "<alternatives/><p>One <alternatives/>of none.</p></article>"
    )
    assert document.text == "So &e;a(&e;)/b is it.\n\nOne of none."


@pytest.mark.parametrize("name", ["p", "table", "tr", "sec", "i", "x", "td", "fn"])
def test_nested_elements_are_read_in_linear_time(name: str) -> None:
    inside = "<td>a <q>b</q></td>" * 20_000
    nested = f"<{name}>" * 200 + inside + f"</{name}>" * 200
    assert read(f"<article><p>One.</p>{nested}</article>").text.count("b") == 20_000


@pytest.mark.parametrize(
    "name", ["alternatives", "sec", "table", "r", "fn", "tr", "list"]
)
def test_many_children_are_read_in_linear_time(name: str) -> None:
    inside = "<title>b</title><label>c</label><q>d</q><td>e</td>" * 20_000
    source = f"<article><p>One.</p><{name}>{inside}</{name}></article>"
    assert read(source).text.startswith("One.")
