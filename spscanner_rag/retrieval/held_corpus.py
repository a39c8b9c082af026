"""The documents that a retriever of any framework holds between queries."""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Generic, Self

from spscanner_rag.retrieval.corpus_folder import (
    check_corpus,
    read_corpus,
    write_corpus,
)
from spscanner_rag.retrieval.first_stage import (
    ChosenText,
    LoadScorer,
    all_are_read,
    choose_texts,
    no_scorer,
)
from spscanner_rag.retrieval.held_texts import HeldTexts, TextsDone
from spscanner_rag.retrieval.host import Host, Item, ReadText
from spscanner_rag.retrieval.read_bounds import ReadBounds
from spscanner_rag.retrieval.token_estimate import estimated_tokens
from spscanner_rag.scorers import Cancelled, never

_LOGGER = logging.getLogger(__name__)


class HeldCorpus(Generic[Item]):
    """The documents of a retriever at one moment.

    Immutable: a query keeps the corpus that it began with. Documents are joined to
    texts, and counted unless ``held_texts`` has their counts, when a query or `persist`
    needs it.

    Parameters
    ----------
    host : Host
        What must be known about the framework's documents.
    items : iterable
        The framework's documents, or their pieces.
    held_texts : HeldTexts, optional
        Counts and vectors of texts, in which those of these documents are looked up.
    """

    changing: ClassVar = threading.Lock()
    """Held by a retriever while it replaces its corpus."""

    def __init__(
        self,
        host: Host[Item],
        items: Iterable[Item] = (),
        held_texts: HeldTexts | None = None,
    ) -> None:
        self.host = host
        self.items = items if isinstance(items, tuple) else tuple(items)
        self._document_ids = tuple(map(host.document, self.items))
        self._held_texts = HeldTexts() if held_texts is None else held_texts
        self._texts: list[ReadText[Item]] | None = None
        self._text_of: Callable[[Item], int | None] | None = None
        self._lock = threading.Lock()

    @classmethod
    def load(cls, path: str | Path, host: Host[Item]) -> Self:
        """Restore what `persist` wrote.

        ``ValueError`` if the folder is missing, damaged or of another kind.
        """
        records, held_texts = read_corpus(path, host.framework)
        try:
            return cls(*host.restored(records), held_texts)
        except (
            ValueError,
            TypeError,
            LookupError,
            AttributeError,
            RecursionError,
        ) as error:
            raise ValueError(
                f"{path}: got documents that are not {host.framework}'s"
                f" ({type(error).__name__}: {error!s:.200}); expected those that"
                " persist(path) wrote: persist them again"
            ) from error

    def persist(
        self,
        path: str | Path,
        load_scorer: LoadScorer = no_scorer,
        progress: TextsDone | None = None,
    ) -> None:
        """Write everything to a folder, as `write_corpus` does.

        What ``load_scorer``'s scorer prepares of a text is made and written too. The
        folder and the documents are checked first.
        """
        records = list(self.host.records(self.items))
        texts, held_texts = self.counted()
        check_corpus(path, records)
        scorer = load_scorer()
        if scorer is not None:
            held_texts.prepare(scorer, range(len(texts)), progress=progress)
            held_texts = held_texts.with_prepared(scorer)
        write_corpus(path, self.host.framework, records, held_texts)

    def index(
        self,
        bounds: ReadBounds,
        load_scorer: LoadScorer,
        progress: TextsDone | None = None,
    ) -> None:
        """Prepare all texts, unless every question reads all of them.

        A question then finds everything that its first stage compares.

        Parameters
        ----------
        bounds : ReadBounds
            How much a question reads.
        load_scorer : callable
            Called only if texts must be chosen for a question.
        progress : callable, optional
            Called with the number of texts that are prepared, and of all.
        """
        _, held_texts = self.counted()
        numbers = [n for n, tokens in enumerate(held_texts.tokens) if tokens]
        if all_are_read(held_texts, bounds, numbers):
            return
        scorer = load_scorer()
        if scorer is not None and scorer.meaning is not None:
            held_texts.prepare(scorer, numbers, progress=progress)

    @property
    def ids(self) -> list[str]:
        """Ids of the documents, in the order in which they were added."""
        return list(dict.fromkeys(self._document_ids))

    def adding(self, items: Iterable[Item]) -> Self:
        """Return the corpus with more items.

        An item with an id that is held replaces the earlier one.
        """
        item_of_key: dict[str, Item] = {}
        for item in (*self.items, *items):
            item_of_key[self.host.key(item)] = item
        return type(self)(self.host, item_of_key.values(), self._held_texts)

    def deleting(self, ids: str | Iterable[str]) -> Self:
        """Return the corpus without these documents.

        ``ValueError`` if one of them is not held.
        """
        if isinstance(ids, str):
            ids = [ids]
        deleted = set(ids)
        unknown = sorted(map(str, deleted.difference(self._document_ids)))
        if unknown:
            raise ValueError(
                f"ids: no document {unknown[0]!r} here; expected ids among the"
                f" {len(self.ids)} held"
            )
        remaining = []
        for item, document_id in zip(self.items, self._document_ids, strict=True):
            if document_id not in deleted:
                remaining.append(item)
        return type(self)(self.host.without(deleted), remaining, self._held_texts)

    def replaced(self, host: Host[Item], items: tuple[Item, ...]) -> Self:
        """Return the corpus of other items.

        Those that are already held are not counted again.
        """
        return type(self)(host, items, self._held_texts)

    def counted(self) -> tuple[list[ReadText[Item]], HeldTexts]:
        """Return all texts, and what is known of them: their words and vectors."""
        with self._lock:
            if self._texts is None:
                texts = self.host.join(self.items)
                joined_texts = [text.joined for text in texts]
                self._held_texts = self._held_texts.with_texts(joined_texts)
                self._texts = texts
            return self._texts, self._held_texts

    def texts_to_read(
        self,
        query: str,
        first_stage: object,
        bounds: ReadBounds,
        admits: Callable[[Item], bool] | None = None,
        found_items: object = None,
        load_scorer: LoadScorer = no_scorer,
        cancelled: Cancelled = never,
    ) -> list[ReadText[Item]]:
        """Choose the texts to read for a query.

        Parameters
        ----------
        query : str
            The query.
        first_stage : object
            "none": all texts, whatever the bounds. "bm25": the best by `choose_texts`.
            Anything else: the texts that contain its ``found_items``, and those of
            these items that none contains, in its order.
        bounds : ReadBounds
            How much is read.
        admits : callable, optional
            Sentences of items that it refuses are read but not selected. Texts without
            any other item are left out.
        found_items : object
            What a first stage of the framework returned.
        load_scorer : callable
            Called only if texts must be chosen.
        cancelled : callable
            Ends the encoding of texts.

        Raises
        ------
        TypeError
            If ``found_items`` is not what the framework's first stages return.
        """
        texts, held_texts = self.counted()
        if not isinstance(first_stage, str):
            ranked = list(_admitted(self._texts_of(found_items), admits).values())
            tokens = [estimated_tokens(text.joined.text) for text in ranked]
            return [ranked[rank] for rank in bounds.within(tokens)]
        admitted = _admitted(texts, admits)
        chosen: list[ChosenText] = [(number, None) for number in admitted]
        if first_stage != "none":
            among = list(admitted)
            chosen = choose_texts(
                held_texts, query, bounds, among, load_scorer, cancelled
            )
        return [replace(admitted[number], score=score) for number, score in chosen]

    def _texts_of(self, found_items: object) -> list[ReadText[Item]]:
        """The texts of items that a first stage returned, in its order.

        Items that no text of the corpus contains are joined to texts of their own.
        """
        if not isinstance(found_items, Sequence) or isinstance(found_items, str):
            raise TypeError(
                f"the first stage returned {type(found_items).__name__}; expected a"
                f" list of {self.host.items_name}"
            )
        texts, _ = self.counted()
        ranks_of_text, loose_ranks = self._ranks_of_texts(found_items, texts)
        if loose_ranks and texts and not ranks_of_text:
            _LOGGER.warning(
                "nothing found belongs to the %d documents: it is read alone",
                len(texts),
            )
        ranked: list[tuple[int, ReadText[Item]]] = []
        for number, ranks in ranks_of_text.items():
            score = self.host.score([found_items[rank] for rank in ranks])
            ranked.append((ranks[0], replace(texts[number], score=score)))
        loose_items = [found_items[rank] for rank in loose_ranks]
        for text in self.host.join_found(loose_items):
            items = [text.items[placed.number] for placed in text.joined.placed]
            keys = set(map(self.host.key, items))
            for rank, item in zip(loose_ranks, loose_items, strict=True):
                if self.host.key(item) in keys:
                    ranked.append((rank, text))
                    break
        ranked.sort(key=lambda entry: entry[0])
        return [text for _, text in ranked]

    def _ranks_of_texts(
        self, found_items: Sequence[Item], texts: Sequence[ReadText[Item]]
    ) -> tuple[dict[int, list[int]], list[int]]:
        """The ranks of each text's items, by its index, and those of other items."""
        with self._lock:
            if self._text_of is None:
                self._text_of = self.host.finder(self.items, texts)
        ranks_of_text: dict[int, list[int]] = {}
        loose_ranks: list[int] = []
        for rank, item in enumerate(found_items):
            number = self._text_of(item)
            if number is None:
                loose_ranks.append(rank)
            else:
                ranks_of_text.setdefault(number, []).append(rank)
        return ranks_of_text, loose_ranks

    def __reduce__(self) -> tuple[type["HeldCorpus[Item]"], tuple[object, ...]]:
        return type(self), (self.host, self.items, self._held_texts)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self  # immutable


def _admitted(
    texts: Sequence[ReadText[Item]], admits: Callable[[Item], bool] | None
) -> dict[int, ReadText[Item]]:
    """Texts by index, with only the pieces that a filter admits.

    Their scores do not change.
    """
    if admits is None:
        return dict(enumerate(texts))
    admitted = {}
    for number, text in enumerate(texts):
        placed = tuple(p for p in text.joined.placed if admits(text.items[p.number]))
        if not placed:
            continue
        if len(placed) < len(text.joined.placed):
            text = replace(text, joined=replace(text.joined, placed=placed))
        admitted[number] = text
    return admitted
