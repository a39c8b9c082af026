"""Encode a text with a tokenizer of the tokenizers library, whose errors become a ``ValueError``."""

from tokenizers import Encoding, Tokenizer

from spscanner_rag.text.units import readable


def encode(tokenizer: Tokenizer, text: str) -> Encoding:
    """Encode a text without special tokens; lone surrogates are read as U+FFFD.

    Raises ``ValueError`` if the tokenizer cannot: a damaged ``tokenizer.json`` may load and fail on some texts.
    """
    try:
        return tokenizer.encode(readable(text), add_special_tokens=False)
    except BaseException as error:
        if not is_fault_of_tokenizers(error):
            raise
        raise ValueError(
            f"the tokenizer fails on a text of {len(text)} characters ({fault(error)}); use the tokenizer that"
            " belongs to the checkpoint, or download it again"
        ) from None


def is_fault_of_tokenizers(error: BaseException) -> bool:
    """Whether the library raised an error: a plain one, or a panic of its Rust code, which is no ``Exception``."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def fault(error: BaseException) -> str:
    """The first line of the library's message, at most 200 characters."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
