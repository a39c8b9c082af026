"""Encoding with a tokenizer that fails."""

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from spscanner_rag.text.tokenization import encode, token_counter, tokenize_question, tokenize_units
from spscanner_rag.text.units import Unit


@pytest.fixture
def panicking(tiny_tokenizer: Tokenizer) -> Tokenizer:
    """Loads, but panics on any text: its pieces have no length."""
    tokenizer = Tokenizer.from_str(tiny_tokenizer.to_str())
    tokenizer.pre_tokenizer = pre_tokenizers.FixedLength(length=0)
    return tokenizer


def test_a_panic_is_an_ordinary_error_everywhere(panicking: Tokenizer) -> None:
    message = "the tokenizer fails on a text of .* characters .*non-zero.*; use the tokenizer that"
    with pytest.raises(ValueError, match=message):
        encode(panicking, "a b")
    with pytest.raises(ValueError, match=message):
        tokenize_question(panicking, "a b")
    with pytest.raises(ValueError, match=message):
        token_counter(panicking)("a b")
    with pytest.raises(ValueError, match=message):
        tokenize_units(panicking, [Unit(0, 3, "a b")], "last_character")


def test_an_error_of_the_library() -> None:
    tokenizer = Tokenizer(models.WordLevel({"a": 0}, unk_token="[UNK]"))
    with pytest.raises(ValueError, match=r"the tokenizer fails on a text of 1 characters .*UNK"):
        encode(tokenizer, "b")


def test_an_interrupt_is_passed_on(tiny_tokenizer: Tokenizer) -> None:
    class Interrupted:
        def encode(self, *_: object, **__: object) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode(Interrupted(), "a")  # type: ignore[arg-type]


def test_a_lone_surrogate(tiny_tokenizer: Tokenizer) -> None:
    assert encode(tiny_tokenizer, "\ud800").ids == encode(tiny_tokenizer, "\ufffd").ids
