"""The bundled checkpoint's tokenizer, and a token counter of it."""

from tokenizers import Tokenizer

from spscanner_rag.checkpoint import locate
from spscanner_rag.checkpoint.file_names import TOKENIZER
from spscanner_rag.checkpoint.tokenizer_file import read_tokenizer
from spscanner_rag.text.encoding import token_counter
from spscanner_rag.text.token_counts import CountTokens


def bundled_token_counter() -> CountTokens:
    """Return a function that counts tokens with the bundled checkpoint's tokenizer.

    No model is loaded.
    """
    return token_counter(bundled_tokenizer())


def bundled_tokenizer() -> Tokenizer:
    """Return the bundled checkpoint's tokenizer."""
    return read_tokenizer(locate(None) / TOKENIZER)
