import json

import pytest
from hypothesis import given, settings

from spscanner_rag.files.readers.notebook import LONGEST_OUTPUT, read_notebook
from tests.small_files import assert_all_read, texts_of_words


def notebook(*cells: dict[str, object]) -> bytes:
    return json.dumps({"cells": cells, "nbformat": 4}).encode()


def code(source: str, *outputs: dict[str, object]) -> dict[str, object]:
    return {"cell_type": "code", "source": [source], "outputs": outputs}


def test_cells_and_outputs_have_places() -> None:
    picture = {"image/png": "iVBORw0KGgo" * 100, "text/plain": "<Figure>"}
    error = {"output_type": "error", "traceback": ["\x1b[31mBoom\x1b[0m"]}
    document = read_notebook(
        notebook(
            {"cell_type": "markdown", "source": ["# Rain\n", "It rained."]},
            code("x = 1", {"output_type": "stream", "text": ["one\n"]}),
            code("plot()", {"output_type": "display_data", "data": picture}, error),
        )
    )
    assert document.text == "# Rain\nIt rained.\n\nx = 1\n\none\n\nplot()\n\nBoom"
    assert document.place_name(document.text.index("rained")) == "cell 1"
    assert document.headings(document.text.index("rained")) == ("Rain",)
    assert document.place_name(document.text.index("one")) == "cell 2, output"
    assert document.notes == ("outputs of type image/png are left out (1)",)


@given(texts_of_words(min_size=1, max_size=6))
@settings(max_examples=10, deadline=None)
def test_every_word_is_in_a_unit(texts: list[str]) -> None:
    cells = []
    for text in texts:
        cells.append({"cell_type": "raw", "source": text})
        cells.append(code(text, {"data": {"text/plain": [text]}}, {"text": text}))
    assert_all_read(read_notebook(notebook(*cells)), texts * 4)


def test_a_giant_output_is_cut_with_a_note() -> None:
    output = {"output_type": "stream", "text": "word " * LONGEST_OUTPUT}
    document = read_notebook(notebook(code("x", output)))
    assert len(document.text) <= LONGEST_OUTPUT + 10
    assert "cut there (1, such as in cell 1)" in document.notes[0]


@pytest.mark.parametrize(
    "data", [b"{}", b"[1]", b"[" * 10**5 + b"]" * 10**5, b"{", b'{"cells": [1, null]}']
)
def test_what_is_no_notebook_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="expected"):
        read_notebook(data)


def test_strange_cells_are_read_as_far_as_they_go() -> None:
    cells = {"cells": [{"source": 3}, {"cell_type": "code", "source": ["a", 1, "b"]}]}
    assert read_notebook(json.dumps(cells).encode()).text == "ab"


def test_every_form_of_an_output_is_read_once() -> None:
    table = {"text/html": "<p>rows</p>", "application/json": {"a": 1}}
    plain = {"text/plain": ["one", "\n", "two"], "text/html": "<p>other</p>"}
    failed = {"output_type": "error", "ename": "ValueError", "evalue": "no rain"}
    document = read_notebook(
        notebook(
            code("a", {"output_type": "execute_result", "data": table}),
            code("b", {"output_type": "execute_result", "data": plain}),
            code("", failed, {"output_type": "display_data", "data": {}}),
            {"cell_type": "raw", "source": " As it is. "},
        )
    )
    assert document.text == (
        "a\n\nrows\n\nb\n\none\ntwo\n\nValueError: no rain\n\nAs it is."
    )
    assert document.notes == ("outputs of type application/json are left out (1)",)


def test_a_long_page_of_an_output_is_cut_with_a_note() -> None:
    page = {"text/html": "<p>" + "rain " * LONGEST_OUTPUT}
    document = read_notebook(notebook(code("a", {"data": page})))
    assert len(document.text) < LONGEST_OUTPUT + 10
    (note,) = document.notes
    assert note.startswith("outputs over 100,000 characters are cut there (1, such as")


def test_an_output_that_cannot_be_read_leaves_the_others() -> None:
    pages = {"text/html": "<div>" * 5000}, {"text/html": "<p>It rained."}
    outputs = [{"data": page} for page in pages]
    document = read_notebook(notebook(code("a", *outputs)))
    assert document.text == "a\n\nIt rained."
    (note,) = document.notes
    assert note.startswith("an output of cell 1 is left out: got elements nested")


def test_cells_of_old_notebooks_are_in_worksheets() -> None:
    cells = [{"cell_type": "code", "input": ["x = 1"]}, "no cell"]
    data = json.dumps({"worksheets": [{"cells": cells}, "no sheet"]}).encode()
    assert read_notebook(data).text == "x = 1"
