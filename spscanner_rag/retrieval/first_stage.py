"""Which texts of a corpus are read for a question: those that a filter admits, the best of them, within bounds."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, cast, get_args

from spscanner_rag.retrieval.corpus import Corpus
from spscanner_rag.retrieval.joined_text import JoinedText

OwnFirstStage = Literal["bm25", "none"]
"""The first stages that need no retriever of a framework."""


def check_own_first_stage(name: str) -> OwnFirstStage:
    """Return the name; raise ``ValueError`` for an unknown one."""
    if name not in get_args(OwnFirstStage):
        raise ValueError(f'first_stage: got {name!r}; expected "bm25", "none" or a retriever')
    return cast("OwnFirstStage", name)


def check_found(found: object, kind: str) -> Sequence[Any]:
    """Return what a framework's first stage found; raise ``TypeError`` unless it is a sequence.

    ``kind`` is what the message expects a list of.
    """
    if not isinstance(found, Sequence) or isinstance(found, str):
        raise TypeError(f"the first stage returned {type(found).__name__}; expected a list of {kind}")
    return found


@dataclass(frozen=True, slots=True)
class ReadBounds:
    """How much is read for one question after a first stage.

    Attributes
    ----------
    read_documents : int, optional
        Maximum number of texts; None for no bound.
    read_tokens : int, optional
        Maximum number of tokens, by `estimated_tokens`; None for no bound. A text that would exceed it is left
        out, except the first.

    Raises
    ------
    ValueError
        Unless both are integers of at least 1 or None.
    """

    read_documents: int | None = 10
    read_tokens: int | None = 200_000

    def __post_init__(self) -> None:
        for name in ("read_documents", "read_tokens"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise ValueError(
                    f"{name}: got {value!r}; expected an integer of at least 1, or None for no bound"
                )

    def kept(self, tokens: Iterable[int]) -> list[int]:
        """Indices of the texts to read, given the tokens of each in the order of the first stage."""
        kept: list[int] = []
        total = 0
        for number, n_tokens in enumerate(tokens):
            if self.read_documents is not None and len(kept) == self.read_documents:
                break
            if kept and self.read_tokens is not None and total + n_tokens > self.read_tokens:
                continue
            kept.append(number)
            total += n_tokens
        return kept


class Chosen(NamedTuple):
    """A text to read."""

    number: int  # index of the text in the corpus
    score: (
        float | None
    )  # the first stage's; None without a first stage, or if the text has no word of the query


def choose_texts(
    corpus: Corpus, query: str, bounds: ReadBounds, among: Sequence[int] | None = None
) -> list[Chosen]:
    """Choose the texts to read for a query.

    If the bounds admit all texts, all are read. Else the first stage ranks them: BM25 of each sentence and of its
    surroundings, the best of each text (`CollectionIndex.best_texts`). Texts without a word of the query come
    last, in the order of the corpus.

    Parameters
    ----------
    corpus : Corpus
    query : str
    bounds : ReadBounds
    among : sequence of int, optional
        Indices of the texts that may be read, in increasing order. Default: all.

    Returns
    -------
    list of Chosen
        In the order of the corpus.
    """
    candidates = range(len(corpus.texts)) if among is None else among
    filled = [number for number in candidates if corpus.tokens[number]]
    if len(bounds.kept(corpus.tokens[number] for number in filled)) == len(filled):
        return [Chosen(number, None) for number in filled]
    admitted = set(filled)
    scores = {number: score for number, score in corpus.ranked(query) if number in admitted}
    ranking = [*scores, *(number for number in filled if number not in scores)]
    kept = sorted(ranking[place] for place in bounds.kept(corpus.tokens[number] for number in ranking))
    return [Chosen(number, scores.get(number)) for number in kept]


def restrict(joined: JoinedText, admits: Callable[[int], bool]) -> JoinedText | None:
    """The text with only those pieces that a filter admits, by their index; None without any.

    All of the text is still read, so no score changes. Sentences outside the admitted pieces are not selected.
    """
    placed = tuple(piece for piece in joined.placed if admits(piece.number))
    if not placed:
        return None
    return joined if len(placed) == len(joined.placed) else replace(joined, placed=placed)
