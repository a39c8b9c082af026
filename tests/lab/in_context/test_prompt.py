"""The tokens of documents and queries."""

import pytest
from tokenizers import Tokenizer, models

from spscanner_lab.in_context.model import BlockSearchModel
from spscanner_lab.in_context.prompt import DOCUMENT_TOKENS, PromptLayout


def test_a_document_and_a_query_as_published(model: BlockSearchModel) -> None:
    layout = model.layout
    found, is_cut = layout.document(" It rained. ", 42)
    assert not is_cut
    assert (found[0], found[-1]) == (layout.begin, layout.end)
    assert (
        layout.tokenizer.decode(found[1:-1].tolist())
        == "Doc 0042: It rained. (Doc 0042)"
    )
    code, ids = [layout.digits[digit] for digit in (0, 0, 4, 2)], found.tolist()
    assert sum(ids[place : place + 4] == code for place in range(len(ids))) == 2, (
        "a token for each digit"
    )
    long, is_cut = layout.document("word " * 500, 7421)
    assert is_cut
    assert len(long) == DOCUMENT_TOKENS
    assert layout.tokenizer.decode(long[-12:].tolist()).endswith(" (Doc 7421)")
    query = layout.query(" Who left? ")
    assert query[0] == layout.begin
    assert (
        layout.tokenizer.decode(query[1:].tolist())
        == "Instruct: Given a web search query, retrieve relevant passages that answer"
        " the query\nQuery: Who left?\nAnswer: "
    )


def test_what_a_layout_needs(digit_tokenizer: Tokenizer) -> None:
    with pytest.raises(ValueError, match="no eos_token_id"):
        PromptLayout.of(digit_tokenizer, 1, None)
    # without a first token, the last one comes first
    layout = PromptLayout.of(digit_tokenizer, None, 7)
    assert (layout.begin, layout.end) == (7, 7)
    with pytest.raises(
        ValueError, match="no token 0; expected one for each of the ten digits"
    ):
        PromptLayout.of(Tokenizer(models.BPE({"a": 0}, [])), 0, 0)
