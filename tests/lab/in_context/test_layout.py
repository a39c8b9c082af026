import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

from spscanner_rag.lab.in_context.layout import DOCUMENT_TOKENS, Layout, digits_of, draw_codes
from spscanner_rag.lab.in_context.model import BlockSearchModel


def test_a_document_and_a_query_as_published(model: BlockSearchModel) -> None:
    layout = model.layout
    found = layout.document(" It rained. ", 42)
    assert not found.cut
    assert found.ids[0] == layout.begin
    assert found.ids[-1] == layout.end
    assert layout.tokenizer.decode(found.ids[1:-1].tolist()) == "Doc 0042: It rained. (Doc 0042)"
    query = layout.query(" Who left? ")
    assert query[0] == layout.begin
    assert layout.tokenizer.decode(query[1:].tolist()) == (
        "Instruct: Given a web search query, retrieve relevant passages that answer the query\n"
        "Query: Who left?\nAnswer: "
    )


def test_every_digit_is_a_token_of_its_own(model: BlockSearchModel) -> None:
    ids = model.layout.document("x", 7421).ids.tolist()
    wanted = [model.layout.digits[digit] for digit in (7, 4, 2, 1)]
    assert sum(ids[place : place + 4] == wanted for place in range(len(ids))) == 2


def test_a_long_document_is_cut_and_keeps_its_codes(model: BlockSearchModel) -> None:
    found = model.layout.document("word " * 500, 7421)
    assert found.cut
    assert len(found.ids) == DOCUMENT_TOKENS
    assert model.layout.tokenizer.decode(found.ids[-12:].tolist()).endswith(" (Doc 7421)")


def test_the_last_token_stands_first_where_there_is_no_first_one(digit_tokenizer: Tokenizer) -> None:
    layout = Layout.of(digit_tokenizer, None, 7)
    assert (layout.begin, layout.end) == (7, 7)
    with pytest.raises(ValueError, match="no token 0; expected one for each of the ten digits"):
        Layout.of(Tokenizer(models.BPE({"a": 0}, [])), 0, 0)


@given(st.integers(1, 300), st.integers(0, 2**32))
def test_codes_are_distinct_and_repeatable(documents: int, seed: int) -> None:
    codes = draw_codes(documents, random.Random(seed))
    assert len(set(codes)) == documents
    assert all(0 <= code <= 9999 for code in codes)
    assert codes == draw_codes(documents, random.Random(seed))
    assert not set(draw_codes(documents, random.Random(seed), codes)) & set(codes)


def test_there_are_ten_thousand_codes() -> None:
    assert sorted(draw_codes(10_000, random.Random(0))) == list(range(10_000))
    with pytest.raises(ValueError, match="got 10,001 documents; expected at most 10,000"):
        draw_codes(9_001, random.Random(0), range(1_000))
    assert digits_of(42) == (0, 0, 4, 2)
