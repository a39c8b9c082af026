"""Check the options that all framework classes take, and make one search of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.results import Compression
from spscanner_rag.retrieval.background import AT_ONCE
from spscanner_rag.retrieval.corpus import Corpus
from spscanner_rag.retrieval.joined_text import JoinedText
from spscanner_rag.retrieval.pruning import KeptPiece, kept_pieces
from spscanner_rag.retrieval.search import Hit, Selection, check_batch_size, search
from spscanner_rag.retrieval.shared_scanners import ScorerChoice
from spscanner_rag.scorers import Cancelled, never
from spscanner_rag.text.token_counts import budget_counter, resolve_counter


@dataclass(frozen=True)
class SentenceSearch:
    """The scorer to use, the sentences to keep, and the number of texts given to the scorer at a time.

    A pickle stores how to load a scanner, not its weights. Copies share the scanner.
    """

    choice: ScorerChoice
    selection: Selection
    batch_size: int = 64
    collection: CollectionIndex | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any], *, top_k: str, top_k_per_text: str) -> Self:
        """Check the options of a framework class, and load nothing.

        ``options`` holds, by name, the fields of `ScorerChoice`, those of `Selection` (with ``context`` as
        ``context_sentences``, ``merge`` as ``merge_adjacent``, and the other two as given here), and
        ``batch_size``. ``keep_compression`` needs a token counter where it is true. Others are ignored.

        Raises
        ------
        ValueError
            For an option out of range, more than one scorer, or a token budget without a token counter.
        TypeError
            For a scanner or scorer that cannot score.
        """
        check_batch_size(options["batch_size"])
        choice = ScorerChoice.of(options)
        choice.check()
        names = {"context": "context_sentences", "merge": "merge_adjacent"}
        selection = Selection.of(options, names | {"top_k": top_k, "top_k_per_text": top_k_per_text})
        scorer = choice.scorer
        if scorer is not None and selection.count_tokens is None and not hasattr(scorer, "count_tokens"):
            budget_counter(selection.max_tokens, None, type(scorer).__name__)
            if options.get("keep_compression"):
                raise ValueError(
                    f"keep_compression: got True, but {type(scorer).__name__} counts no tokens; expected "
                    'count_tokens as well, for example count_tokens="o200k_base"'
                )
        return cls(choice, selection, options["batch_size"])

    def within(self, corpus: Corpus) -> Self:
        """The same search with scores relative to all texts of a corpus, whichever are read."""
        return replace(self, collection=corpus.collection)

    def __call__(
        self,
        query: str,
        texts: Sequence[JoinedText],
        cancelled: Cancelled = never,
    ) -> list[Hit]:
        """The best passages of all texts together. If there is nothing to read, no scorer is loaded."""
        if not any(joined.text.strip() for joined in texts):
            return []
        scorer = self.choice.resolve()
        return search(
            scorer,
            query,
            texts,
            self.selection,
            collection=self.collection,
            batch_size=self.batch_size,
            cancelled=cancelled,
        )

    def pieces(
        self, query: str, texts: Sequence[JoinedText], cancelled: Cancelled = never, *, pruned: bool = False
    ) -> list[KeptPiece]:
        """The pieces in which the best sentences stand, best first or in the order of the texts, as selected.

        With ``pruned``, only pieces that keep some text.
        """
        unmerged = replace(self, selection=replace(self.selection, merge=False))
        kept = kept_pieces(texts, unmerged(query, texts, cancelled))
        if pruned:
            kept = [piece for piece in kept if piece.spans]
        if self.selection.order == "score":
            kept.sort(key=lambda piece: -piece.best.logit)
        return kept

    @property
    def at_once(self) -> int:
        """How many searches may run at a time: few here, and as many as a scorer that asks a server says."""
        return int(getattr(self.choice.scorer, "calls_at_once", AT_ONCE))

    def compression(self, texts: Iterable[JoinedText], kept: Iterable[str]) -> Compression:
        """Tokens of what is returned, and of the texts that were read for it, both by `token_counter`."""
        count = self.token_counter()
        if count is None:
            raise ValueError("keep_compression: nothing counts tokens; expected count_tokens as well")
        return Compression(sum(map(count, kept)), sum(count(joined.text) for joined in texts))

    def token_counter(self) -> Callable[[str], int] | None:
        """What counts tokens for the budget; None if the scorer counts none and no other counter was given."""
        count_tokens = self.selection.count_tokens
        if count_tokens is None:
            return getattr(self.choice.resolve(), "count_tokens", None)
        return resolve_counter(count_tokens)

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return type(self), (self.choice.without_weights(), self.selection, self.batch_size)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self  # immutable, and a scanner should not be in memory twice
