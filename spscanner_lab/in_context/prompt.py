"""How documents with codes and queries are laid out as tokens."""

import random
from typing import Final, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from spscanner_rag.text.surrogates import replace_surrogates

DIGITS: Final = 4
MOST_DOCUMENTS: Final = 10**DIGITS
# in a document, including its codes; the positions of a query begin here
DOCUMENT_TOKENS: Final = 300

INSTRUCTION: Final = (
    "Given a web search query, retrieve relevant passages that answer the query"
)

TokenIds = NDArray[np.int64]
Codes = Literal["random", "position"]


class PromptLayout(NamedTuple):
    r"""Lays documents and queries out as tokens.

    Each digit of a code is a separate token.

    A document is ``[BOS]Doc 7421: {text} (Doc 7421)[EOS]``. A query is ``[BOS]Instruct:
    {instruction}\nQuery: {query}\nAnswer: ``, and the four digits follow.
    """

    tokenizer: Tokenizer
    begin: int  # [BOS]
    end: int  # [EOS]
    digits: tuple[int, ...]  # the tokens of "0" to "9"

    @classmethod
    def of(cls, tokenizer: Tokenizer, begin: int | None, end: int | None) -> Self:
        """Take the ids of the first and the last token from the model's configuration.

        It must have the last one.

        Without a first one, as in Qwen3's tokenizer, the last one is used at the
        beginning as well.
        """
        if end is None:
            raise ValueError(
                "the model's configuration has no eos_token_id; expected the id of the"
                " token that ends a document"
            )
        digits = [tokenizer.token_to_id(str(digit)) for digit in range(10)]
        if None in digits:
            raise ValueError(
                f"the tokenizer has no token {digits.index(None)!r}; expected one for"
                " each of the ten digits that codes consist of"
            )
        return cls(
            tokenizer,
            end if begin is None else begin,
            end,
            tuple(digit for digit in digits if digit is not None),
        )

    def document(self, text: str, code: int) -> tuple[TokenIds, bool]:
        """Lay out a document with its code.

        Returns its tokens, and whether its text was cut to fit `DOCUMENT_TOKENS`.
        """
        number = [self.digits[digit] for digit in digits_of(code)]
        before = [self.begin, *self._ids("Doc "), *number, *self._ids(": ")]
        after = [*self._ids(" (Doc "), *number, *self._ids(")"), self.end]
        room = DOCUMENT_TOKENS - len(before) - len(after)
        body = self._ids(replace_surrogates(text.strip()))
        return np.array([*before, *body[:room], *after], np.int64), len(body) > room

    def query(self, query: str) -> TokenIds:
        """Lay out a query up to where the code begins: (tokens,)."""
        question = replace_surrogates(query.strip())
        prompt = f"Instruct: {INSTRUCTION}\nQuery: {question}\nAnswer: "
        return np.array([self.begin, *self._ids(prompt)], np.int64)

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids


def digits_of(code: int) -> tuple[int, ...]:
    """Return the digits of a code, with leading zeros."""
    return tuple(int(digit) for digit in f"{code:0{DIGITS}d}")


def draw_codes(
    documents: int, draw: random.Random, codes: Codes = "random"
) -> list[int]:
    """Distinct codes from 0000 to 9999, drawn uniformly or counted ("position").

    ``ValueError`` for too many.
    """
    if documents > MOST_DOCUMENTS:
        raise ValueError(
            f"got {documents:,} documents; expected at most {MOST_DOCUMENTS:,}, since"
            f" codes have {DIGITS} digits: take the best {MOST_DOCUMENTS:,} of another"
            " retriever"
        )
    return (
        draw.sample(range(MOST_DOCUMENTS), documents)
        if codes == "random"
        else list(range(documents))
    )
