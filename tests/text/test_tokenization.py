"""Token ids of pieces equal those of the whole text.

Unit ends by both rules, failing tokenizers, and memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import (
    Regex,
    Tokenizer,
    models,
    pre_tokenizers,
)

from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.tokenization import (
    encode_question,
    tokenize_units,
)
from tests.text.hard_texts import any_text
from tests.text.tokenizers_of_all_kinds import KINDS, as_units


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return KINDS[request.param]()


@given(text=any_text)
def test_the_last_character_is_in_the_token(
    tiny_tokenizer: Tokenizer, text: str
) -> None:
    units = SentenceSegmenter(max_characters=60).segment(text)
    tokens = tokenize_units(tiny_tokenizer, units, "last_character", 50)
    assert len(tokens.unit_ends) == len(units)
    for unit, end in zip(units, tokens.unit_ends, strict=True):
        assert tokens.token_starts[end] < unit.end <= tokens.token_ends[end]
        # the last of the tokens that share a character of several bytes
        assert (
            end + 1 == len(tokens.token_starts)
            or tokens.token_starts[end + 1] >= unit.end
        )


@given(texts=st.lists(any_text.filter(bool), max_size=12))
def test_the_last_token_within_the_unit(
    tiny_tokenizer: Tokenizer, texts: list[str]
) -> None:
    tokens = tokenize_units(tiny_tokenizer, as_units(*texts), "contained", 50)
    stop, before = 0, 0
    for text, found in zip(texts, tokens.unit_ends.tolist(), strict=True):
        stop += len(text)
        inside = [
            index for index, end in enumerate(tokens.token_ends.tolist()) if end <= stop
        ]
        assert found == max(before, inside[-1] if inside else 0)
        before = found


def test_the_two_rules_differ_where_a_token_straddles_the_boundary() -> None:
    words = {"one": 0, ".Two": 1, "three": 2}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="one"))
    words_of_it = pre_tokenizers.Split(Regex(r"\.?\w+"), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), words_of_it]
    )
    units = as_units("one.", "Two", " three")
    assert tokenize_units(tokenizer, units, "contained").unit_ends.tolist() == [0, 1, 2]
    assert tokenize_units(tokenizer, units, "last_character").unit_ends.tolist() == [
        1,
        1,
        2,
    ]


def test_units_without_a_visible_character_end_within_themselves(
    tiny_tokenizer: Tokenizer,
) -> None:
    blank = tokenize_units(
        tiny_tokenizer, as_units("ab", "\n\n", "cd"), "last_character"
    )
    assert blank.token_starts[blank.unit_ends].tolist() == [1, 2, 5]
    empty = tokenize_units(
        tiny_tokenizer, as_units("", "ab", "", "xy", ""), "last_character"
    )
    assert empty.token_starts[empty.unit_ends].tolist() == [0, 1, 1, 3, 3]


def test_a_question_is_stripped_and_ends_its_line(tiny_tokenizer: Tokenizer) -> None:
    found = encode_question(tiny_tokenizer, " \tWho signed \ud800 it?\n\n")[0]
    assert found.dtype == np.int32
    assert found.tolist() == tiny_tokenizer.encode("Who signed \ufffd it?\n").ids


@pytest.mark.parametrize("limit", ["truncation", "padding"])
def test_a_tokenizer_that_truncates_or_pads_is_refused(
    tiny_tokenizer: Tokenizer, limit: str
) -> None:
    tokenizer = Tokenizer.from_str(tiny_tokenizer.to_str())
    if limit == "truncation":
        tokenizer.enable_truncation(4)
    else:
        tokenizer.enable_padding(length=8)
    with pytest.raises(ValueError, match="truncates or pads, expected neither"):
        tokenize_units(tokenizer, as_units("text"), "contained")
    with pytest.raises(ValueError, match="truncates or pads, expected neither"):
        encode_question(tokenizer, "text")


def test_a_tokenizer_that_gives_nothing_is_refused() -> None:
    silent = Tokenizer(models.BPE())
    silent.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    with pytest.raises(ValueError, match="gives no tokens for a text of 4 characters"):
        tokenize_units(silent, as_units("text"), "contained")
