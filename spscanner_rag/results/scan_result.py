"""`ScanResult`, what a scan returns: the sentences of a document with their scores."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spscanner_rag.results.citations import with_citations
from spscanner_rag.results.document_scores import Aggregation, document_score
from spscanner_rag.results.excerpts import quoted_excerpt
from spscanner_rag.results.neighbours import Blocks
from spscanner_rag.results.offsets import Offsets
from spscanner_rag.results.passages import Located, Passage, shown_text
from spscanner_rag.results.ranking import sigmoid
from spscanner_rag.results.result_export import as_data_frame, as_dictionaries, as_html
from spscanner_rag.results.rule_signatures import shows_rules
from spscanner_rag.results.selection import Order, RuleArguments, Selection, is_integer
from spscanner_rag.results.sentence_selection import SentenceSelector
from spscanner_rag.results.sentences import ScoredSentence
from spscanner_rag.text.keep_scale import KeepScale
from spscanner_rag.text.token_counts import CountTokens, budget_counter

if TYPE_CHECKING:
    import pandas

_SENTENCES_IN_NOTEBOOKS = 10

NO_KEEP_SCALE = (
    "keep: this result has no relative scores, because its checkpoint has no"
    " spscanner.keep, or was read with another encoder; expected the bundled"
    " checkpoint with its own encoder: use that, or threshold instead"
)


@dataclass(frozen=True, eq=False, repr=False)
class ScanResult:
    """The sentences of one document, scored for one query.

    Parameters
    ----------
    query : str
        The question as it was asked.
    text : str
        The document as it was given; all spans index this string.
    starts, ends : array of int, shape (n,)
        Spans of the sentences in characters, ascending and disjoint.
    logits : array of float32, shape (n,)
        The scanner's output for each sentence, finite.
    count_tokens : callable, optional
        Counts the tokens of a text, for budgets; in a scanner's result it is the
        scanner's tokenizer. If None, as after unpickling, pass ``count_tokens`` to
        :meth:`select` instead.
    blocks : array of int, shape (n,), optional
        Ascending number of each sentence's block. Neighbours and merged passages stay
        in a block. None: one block.
    tokens_read : int, optional
        Tokens of the document that the model read, without the question and its
        repetitions. None: not counted.
    n_tokens : int, optional
        All tokens of the document, of which a share may have been read. None: not
        counted.
    answerable : float, optional
        The probability that some sentence answers the question, from 0 to 1. None if
        the scanner does not report it, as without its own encoder.
    encoder : str, optional
        What made the vectors of the sentences: "default" for the checkpoint's own
        encoder, "multilingual" for that of texts and questions that are not English,
        "custom" for the caller's. None: nothing did.
    document : optional
        What `spscanner_rag.files.read` returned; passages then have their places in it.
    keep_scale : KeepScale, optional
        What turns the logits into `relative_scores`, which the presets of ``keep`` cut
        at. None: there are none, and presets are refused.
    shows_relative : bool, default False
        Whether ``threshold`` cuts at relative scores, and passages have them as their
        score, as in the classes of the frameworks.

    Raises
    ------
    ValueError
        If the arrays differ in length, a span lies outside the text or overlaps the one
        before, a logit is not finite, or ``tokens_read`` or ``n_tokens`` is below 0.

    Examples
    --------
    >>> text = "Ships leave at noon. The keeper signed it. Nobody waits."
    >>> spans = {"starts": [0, 21, 43], "ends": [20, 42, 56]}
    >>> result = ScanResult("Who signed it?", text, logits=[-2.0, 3.0, -1.0], **spans)
    >>> result
    ScanResult(query='Who signed it?', characters=56, sentences=3, best score=0.9526)
    >>> result.select(top_k=1)
    (Passage('The keeper signed it.', start=21, end=42, score=0.9526),)
    >>> print(result.context(top_k=2))
    The keeper signed it. Nobody waits.
    """

    query: str
    text: str
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    logits: NDArray[np.float32]
    count_tokens: CountTokens | None = None
    blocks: NDArray[np.int64] | None = None
    tokens_read: int | None = None
    answerable: float | None = None
    document: Located | None = None
    n_tokens: int | None = None
    encoder: str | None = None
    keep_scale: KeepScale | None = None
    shows_relative: bool = False

    def __post_init__(self) -> None:
        self._freeze("starts", np.int64)
        self._freeze("ends", np.int64)
        self._freeze("logits", np.float32)
        if self.blocks is not None:
            self._freeze("blocks", np.int64)
        self._check_spans()
        self._check_logits()
        self._check_blocks()
        self._check_tokens("tokens_read", self.tokens_read)
        self._check_tokens("n_tokens", self.n_tokens)

    def _freeze(self, name: str, dtype: type[np.generic]) -> None:
        """Replace what the caller gave by an array that nobody can change."""
        object.__setattr__(self, name, _frozen(getattr(self, name), dtype))

    def _check_spans(self) -> None:
        shapes = (self.starts.shape, self.ends.shape, self.logits.shape)
        if self.starts.ndim != 1 or len(set(shapes)) != 1:
            raise ValueError(
                f"starts, ends, logits: got shapes {shapes}; expected one value each"
                " per sentence"
            )
        bounds = np.column_stack([self.starts, self.ends]).ravel()
        inside = len(bounds) == 0 or (bounds[0] >= 0 and bounds[-1] <= len(self.text))
        is_empty = self.starts == self.ends
        if not inside or (np.diff(bounds) < 0).any() or is_empty.any():
            raise ValueError(
                "starts, ends: got spans that overlap, are empty or leave the text of"
                f" {len(self.text)} characters; expected ascending, disjoint spans of"
                " the scanned document"
            )

    def _check_logits(self) -> None:
        n_wrong = int((~np.isfinite(self.logits)).sum())
        if n_wrong:
            raise ValueError(
                f"logits: got {n_wrong} values that are not"
                " finite; expected numbers: check the checkpoint, or scan with"
                ' dtype="float32"'
            )

    def _check_blocks(self) -> None:
        blocks = self.blocks
        if blocks is None:
            return
        if blocks.shape != self.logits.shape or (blocks[1:] < blocks[:-1]).any():
            raise ValueError(
                f"blocks: got shape {blocks.shape} for {len(self.logits)} sentences;"
                " expected one number for each, none smaller than the one before"
            )

    def _check_tokens(self, name: str, tokens: int | None) -> None:
        if tokens is None:
            return
        if not is_integer(tokens) or tokens < 0:
            raise ValueError(
                f"{name}: got {tokens!r}; expected a whole number of at least 0, or"
                " None"
            )

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """Sigmoid of the logits, shape ``(n,)``, float64."""
        return _frozen(sigmoid(self.logits), np.float64)

    @cached_property
    def relative_scores(self) -> NDArray[np.float64]:
        """How much each sentence is worth keeping, shape ``(n,)``, from 0 to 1.

        0.5 is where "balanced" cuts. They depend on the best sentence and on whether
        the text answers at all, and are in the order of the logits; see
        `spscanner_rag.text.keep_scale.KeepScale`.

        Raises
        ------
        ValueError
            If there is no ``keep_scale``.
        """
        if self.keep_scale is None:
            raise ValueError(NO_KEEP_SCALE)
        relative = self.keep_scale.scores(self.logits, self.answerable)
        return _frozen(relative, np.float64)

    @property
    def block_of(self) -> Blocks:
        """The block of each sentence: ``blocks``, or zeros if that is None."""
        if self.blocks is None:
            return np.zeros(len(self.starts), np.int64)
        return self.blocks

    @cached_property
    def sentences(self) -> tuple[ScoredSentence, ...]:
        """All sentences in document order, made on first use."""
        starts = self.starts.tolist()
        ends = self.ends.tolist()
        columns = (starts, ends, self.logits.tolist(), self.scores.tolist())
        sentences = []
        for start, end, logit, score in zip(*columns, strict=True):
            text = shown_text(self.text, self.document, start, end)
            sentences.append(ScoredSentence(text, start, end, logit, score))
        return tuple(sentences)

    @shows_rules
    def select(
        self,
        top_k: float | str | None = 50,
        threshold: float | None = None,
        max_tokens: int | None = None,
        count_tokens: CountTokens | str | None = None,
        context: int = 0,
        order: Order = "document",
        merge: bool = False,
        diversity: float = 1.0,
        **rules: Unpack[RuleArguments],
    ) -> tuple[Passage, ...]:
        r"""Select the best sentences.

        Sentences are taken from the highest logit down; among equal ones the earlier
        comes first. ``order`` and ``merge`` do not change which ones are taken. The
        result is empty when no sentence qualifies.

        Parameters
        ----------
        top_k : int, float, str or None, default 50
            Maximum number of sentences: an integer of at least 1, or a share of all
            sentences between 0 and 1 (rounded up, at least 10 sentences), or None for
            no limit. "elbow": those before the steepest fall of the sorted scores, from
            1 to 50 sentences; "elbow:5-30" sets other bounds.
        threshold : float, optional
            The lowest score that is taken, from 0 to 1, inclusive. Neighbours may score
            lower.
        max_tokens : int, optional
            Token budget for all that is returned. The best sentences come first, then
            their neighbours: those of the best sentence first, nearest first. A
            sentence that does not fit is skipped; a neighbour is taken only if it
            connects to its sentence. The budget holds for the passages counted one by
            one, for the passages joined by line breaks, and for :meth:`context` with
            the same arguments.
        count_tokens : callable or str, optional
            What counts the tokens: a callable ``str -> int`` or the name of a tiktoken
            encoding, such as ``"o200k_base"`` (special tokens are read as text).
            Default: the scanner's tokenizer.
        context : int, default 0
            How many neighbours to add on each side of each sentence, on top of
            ``top_k``.
        order : {"document", "score"}, default "document"
            ``"score"`` means best first.
        merge : bool, default False
            Make one passage of each run of adjacent sentences, with the white space
            between them.
        diversity : float, default 1.0
            Below 1, sentences that repeat better ones are passed over: the next one
            taken has the highest diversity * score - (1 - diversity) * (highest
            similarity to a sentence already taken), as long as ``top_k`` and
            ``threshold`` allow (maximal marginal relevance; see
            `results.diversity.diverse`).
        **rules
            Those of `spscanner_rag.results.selection.RuleArguments`, such as
            ``always_keep`` and ``require_answer``.

        Raises
        ------
        ValueError
            If an argument is out of range, if ``max_tokens`` is given and there is no
            token counter, if ``require_answer`` is given and ``answerable`` is None, or
            if ``keep`` is given and there is no ``keep_scale``.
        """
        return self.selected(
            Selection(
                top_k=top_k,
                threshold=threshold,
                max_tokens=max_tokens,
                count_tokens=count_tokens,
                context=context,
                order=order,
                merge=merge,
                diversity=diversity,
                **rules,
            )
        )

    def selected(
        self, selection: Selection, owners: NDArray[np.integer[Any]] | None = None
    ) -> tuple[Passage, ...]:
        """:meth:`select` with its arguments in one object.

        ``owners`` is as for :meth:`picks`.
        """
        selector = self._selector(owners)
        picks = self._picks(selector, selection)
        count_tokens = selection.count_tokens
        if count_tokens is None:
            count_tokens = self.count_tokens
        counter = budget_counter(selection.max_tokens, count_tokens, "this result")
        return selector.passages(picks, selection, counter)

    def picks(
        self, selection: Selection, owners: NDArray[np.integer[Any]] | None = None
    ) -> NDArray[np.int64]:
        """Indices of the sentences selected before the budget applies: (picks,).

        They are in the order of selecting. ``owners``, (n,), has the index of each
        sentence's text, for ``selection.top_k_per_text``.
        """
        return self._picks(self._selector(owners), selection)

    def _picks(
        self, selector: SentenceSelector, selection: Selection
    ) -> NDArray[np.int64]:
        if not self.may_answer(selection.require_answer):
            return np.zeros(0, np.int64)
        if selection.keep is not None and self.keep_scale is None:
            raise ValueError(NO_KEEP_SCALE)
        return selector.picks(selection)

    def _selector(self, owners: NDArray[np.integer[Any]] | None) -> SentenceSelector:
        relative = None
        if self.keep_scale is not None:
            relative = self.relative_scores
        return SentenceSelector(
            self.text,
            self.starts,
            self.ends,
            self.logits,
            self.scores,
            self.block_of,
            self.document,
            relative,
            self.keep_scale,
            self.shows_relative,
            owners,
        )

    def may_answer(self, least_probability: float | None) -> bool:
        """Whether the text answers the query with at least this probability.

        None is no bound. Raises ``ValueError`` for a bound if the probability is not
        known.
        """
        if least_probability is None:
            return True
        if self.answerable is None:
            raise ValueError(
                "require_answer: this result does not have the probability that its"
                " text answers; expected that of a scanner with its own encoder, such"
                " as the bundled one: use that, or threshold instead"
            )
        return self.answerable >= least_probability

    @shows_rules
    def context(
        self,
        top_k: float | str | None = 50,
        threshold: float | None = None,
        max_tokens: int | None = None,
        count_tokens: CountTokens | str | None = None,
        context: int = 0,
        diversity: float = 1.0,
        cite: bool = False,
        **rules: Unpack[RuleArguments],
    ) -> str:
        r"""Return the selected sentences as one string for a language model.

        They are in document order. Adjacent sentences are separated as in the document,
        all others by a line break ``"\n"``, as in the paper. The arguments and errors
        are those of :meth:`select`. With ``cite``, a mark such as " [1]" follows each
        run of sentences, and a list of their places such as "[1] report.pdf, page 12"
        follows the last; ``max_tokens`` counts neither. The sentences are then framed:
        what looks like such a mark, or like Markdown or HTML that acts, gets a
        backslash, and invisible characters become Python escapes.
        """
        passages = self.select(
            top_k=top_k,
            threshold=threshold,
            max_tokens=max_tokens,
            count_tokens=count_tokens,
            context=context,
            order="document",
            merge=True,
            diversity=diversity,
            **rules,
        )
        if cite and passages:
            return with_citations(passages)
        return "\n".join(passage.text for passage in passages)

    def document_score(
        self, aggregation: Aggregation = "max", *, top: int = 3
    ) -> float:
        """One score for the whole document, to rank documents by.

        It is on the scale of the logits. Scores are comparable between documents that
        were scanned for one question as one collection (``Scanner.scan_many(...,
        together=True)``, ``Scanner.rank``). See
        `results.document_scores.document_score`.
        """
        return document_score(self.logits, aggregation, top=top)

    def to_dict(self, offsets: Offsets = "characters") -> dict[str, Any]:
        """Return everything but the document's text, for JSON.

        ``offsets`` is the unit of ``start`` and ``end``. "characters" are those of
        Python, "utf16" the units of JavaScript, Java and C#, "bytes" those of UTF-8, as
        in Rust and Go.

        The keys: ``query``, ``characters`` and ``n_tokens`` of the document,
        ``tokens_read``, ``answerable`` (None if unknown), ``encoder`` (None without
        one) and ``sentences`` in document order, each with ``start``, ``end``,
        ``score``, ``logit`` and ``text``.
        """
        return {
            "query": self.query,
            "characters": len(self.text),
            "n_tokens": self.n_tokens,
            "tokens_read": self.tokens_read,
            "answerable": self.answerable,
            "encoder": self.encoder,
            "sentences": as_dictionaries(self.text, self.sentences, offsets),
        }

    def to_json(
        self, indent: int | None = None, offsets: Offsets = "characters"
    ) -> str:
        """:meth:`to_dict` as JSON in ASCII, on one line unless ``indent`` is given."""
        content = self.to_dict(offsets)
        return json.dumps(content, indent=indent, ensure_ascii=True, allow_nan=False)

    def to_pandas(self) -> "pandas.DataFrame":
        """All sentences as a data frame, one per row, in document order.

        The columns are ``text``, ``start``, ``end``, ``logit``, ``score`` and ``rank``
        (1 for the best). Without pandas it raises ``ImportError``.
        """
        return as_data_frame(self.sentences)

    def __reduce__(self) -> tuple[type["ScanResult"], tuple[object, ...]]:
        # Without cached properties, and without the counter, which may hold a whole
        # scanner.
        count_tokens = None
        return ScanResult, (
            self.query,
            self.text,
            self.starts,
            self.ends,
            self.logits,
            count_tokens,
            self.blocks,
            self.tokens_read,
            self.answerable,
            self.document,
            self.n_tokens,
            self.encoder,
            self.keep_scale,
            self.shows_relative,
        )

    def __copy__(self) -> "ScanResult":
        return self  # immutable

    def __deepcopy__(self, memo: dict[int, object]) -> "ScanResult":
        return self

    def __repr__(self) -> str:
        best = f", best score={self.scores.max():.4g}" if len(self.scores) else ""
        return (
            f"ScanResult(query={quoted_excerpt(self.query)},"
            f" characters={len(self.text)}, sentences={len(self.logits)}{best})"
        )

    def _repr_html_(self) -> str:
        """The question and the best sentences with their places, for a notebook."""
        facts = f"{len(self.text):,} characters · {len(self.logits):,} sentences"
        if self.tokens_read is not None:
            facts += f" · {self.tokens_read:,} tokens read"
        if self.n_tokens is not None and self.tokens_read != self.n_tokens:
            facts += f" of {self.n_tokens:,}"
        passages = self.select(_SENTENCES_IN_NOTEBOOKS, order="score")
        return as_html(self.query, facts, passages)


def _frozen(values: ArrayLike, dtype: type[np.generic]) -> NDArray[Any]:
    array = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array
