"""One call of a tokenizer: no special tokens, and errors that say what to do."""

from functools import partial

from tokenizers import Encoding, Tokenizer

from spscanner_rag.text.escaping import first_line
from spscanner_rag.text.surrogates import replace_surrogates
from spscanner_rag.text.token_counts import CountTokens


def encode(tokenizer: Tokenizer, text: str) -> Encoding:
    """Encode a text without special tokens, lone surrogates as U+FFFD.

    ``ValueError`` if a damaged tokenizer fails.
    """
    try:
        return tokenizer.encode(replace_surrogates(text), add_special_tokens=False)
    except BaseException as error:
        if not is_fault_of_tokenizers(error):
            raise
        raise ValueError(
            f"the tokenizer fails on a text of {len(text)} characters"
            f" ({first_line(error)}); use the tokenizer that belongs to the checkpoint,"
            " or download it again"
        ) from None


def is_fault_of_tokenizers(error: BaseException) -> bool:
    """True if the library raised the error.

    It raises an ``Exception``, or its Rust code panics, which is not one.
    """
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def require_plain(tokenizer: Tokenizer) -> None:
    """Raise ``ValueError`` for a tokenizer that truncates or pads."""
    if tokenizer.truncation is not None or tokenizer.padding is not None:
        raise ValueError(
            "the tokenizer truncates or pads, expected neither; "
            "call its no_truncation() and no_padding() first"
        )


def token_counter(tokenizer: Tokenizer) -> CountTokens:
    """Return a function that counts the tokens of a text without special tokens.

    The function can be pickled.
    """
    return partial(_count_tokens, tokenizer)


def _count_tokens(tokenizer: Tokenizer, text: str) -> int:
    return len(encode(tokenizer, text).ids)
