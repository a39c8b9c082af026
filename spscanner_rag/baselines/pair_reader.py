"""The input of a Mamba reranker: a template with a document and a query."""

from typing import Final

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from spscanner_rag.mamba2.token_sequences import TokenSequence
from spscanner_rag.text.tokenization_in_parts import first_tokens, tokenize_in_parts

TEMPLATE: Final = "document: {document}; query: {query};"
"""The input for a pair.

An end-of-text token follows, and the logit is computed from that token's hidden state.
"""

END_TOKENS: Final = ("<|endoftext|>", "</s>", "<|im_end|>")
"""Names of the end token, in the order in which they are looked up in a tokenizer."""

_PIECE_CHARACTERS: Final = 32_768


class PairReader:
    """Makes a reranker's input from a query and a document.

    The input is the tokens of `TEMPLATE`, then the end token.
    """

    def __init__(self, tokenizer: Tokenizer, end_token: str | None = None) -> None:
        """Use ``end_token``, or the first of `END_TOKENS`.

        ``ValueError`` if the tokenizer has none.
        """
        names = END_TOKENS if end_token is None else (end_token,)
        ids_of_names = [tokenizer.token_to_id(name) for name in names]
        known_ids = [number for number in ids_of_names if number is not None]
        if not known_ids:
            raise ValueError(
                f"the tokenizer has no token {' or '.join(names)}; pass end_token=, the"
                " token that ended each input in training"
            )
        self.tokenizer = tokenizer
        self.end = known_ids[0]

    def sequence(
        self, query: str, document: str, tokens: int | None = None
    ) -> TokenSequence:
        """One sequence, whose only position is the end token.

        ``tokens`` limits the document's.
        """
        if tokens is not None:
            document = first_tokens(self.tokenizer, document, tokens, _PIECE_CHARACTERS)
        ids = self.ids(TEMPLATE.format(document=document, query=query))
        return TokenSequence(np.append(ids, np.int32(self.end)), np.array([len(ids)]))

    def ids(self, text: str) -> NDArray[np.int32]:
        """Token ids of a text, without special tokens: (tokens,)."""
        pieces = tokenize_in_parts(self.tokenizer, text, _PIECE_CHARACTERS)
        return np.concatenate([np.empty(0, np.int32), *(ids for ids, _ in pieces)])
