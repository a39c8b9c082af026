"""The bundled checkpoint's tokenizer as a token counter."""

from spscanner_rag.checkpoint import locate
from spscanner_rag.checkpoint.file_names import TOKENIZER
from spscanner_rag.checkpoint.tokenizer_file import read_tokenizer
from spscanner_rag.text.encoding import token_counter
from spscanner_rag.text.token_counts import CountTokens


def bundled_token_counter() -> CountTokens:
    """Return a function that counts tokens with the bundled checkpoint's tokenizer.

    No model is loaded.
    """
    return token_counter(read_tokenizer(locate(None) / TOKENIZER))
