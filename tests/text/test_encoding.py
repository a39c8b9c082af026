"""One call of a tokenizer, and its failures."""

import pytest
from tokenizers import (
    Tokenizer,
    models,
    pre_tokenizers,
    processors,
)

from spscanner_rag.text.encoding import encode, token_counter
from spscanner_rag.text.tokenization import (
    encode_question,
    tokenize_units,
)
from spscanner_rag.text.units import Unit
from tests.text.tokenizers_of_all_kinds import KINDS, as_units, word_piece


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return KINDS[request.param]()


def test_no_special_tokens_are_added() -> None:
    tokenizer = word_piece()
    tokenizer.add_special_tokens(["[CLS]"])
    marker = tokenizer.token_to_id("[CLS]")
    tokenizer.post_processor = processors.TemplateProcessing(
        "[CLS] $0", None, [("[CLS]", marker)]
    )
    assert marker not in encode_question(tokenizer, "Who?")[0]
    assert (
        marker
        not in tokenize_units(tokenizer, as_units("He did."), "contained").input_ids
    )


@pytest.fixture
def panicking(tiny_tokenizer: Tokenizer) -> Tokenizer:
    """A tokenizer that loads, but panics on any text: its pieces have no length."""
    tokenizer = Tokenizer.from_str(tiny_tokenizer.to_str())
    tokenizer.pre_tokenizer = pre_tokenizers.FixedLength(length=0)
    return tokenizer


def test_a_panic_is_an_ordinary_error_everywhere(panicking: Tokenizer) -> None:
    message = (
        "the tokenizer fails on a text of .* characters .*non-zero.*; use the tokenizer"
        " that"
    )
    units = [Unit(0, 3, "a b")]
    for call in (
        lambda: encode(panicking, "a b"),
        lambda: encode_question(panicking, "a b"),
        lambda: token_counter(panicking)("a b"),
        lambda: tokenize_units(panicking, units, "last_character"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_an_error_of_the_library() -> None:
    tokenizer = Tokenizer(models.WordLevel({"a": 0}, unk_token="[UNK]"))
    with pytest.raises(
        ValueError, match=r"the tokenizer fails on a text of 1 characters .*UNK"
    ):
        encode(tokenizer, "b")


def test_an_interrupt_is_passed_on(tiny_tokenizer: Tokenizer) -> None:
    class Interrupted:
        def encode(self, *_: object, **__: object) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode(Interrupted(), "a")  # type: ignore[arg-type]
