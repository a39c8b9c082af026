"""Hits to sentence nodes, and the search that finds them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from llama_index.core.schema import BaseNode, NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

from llama_index.postprocessor.spscanner.nodes import (
    LOGIT_KEY,
    OWN_KEYS,
    RETRIEVAL_SCORE_KEY,
    Reading,
    related,
)
from llama_index.postprocessor.spscanner.saved import scanner_fields
from spscanner_rag.retrieval.pieces import copied_metadata
from spscanner_rag.retrieval.search import Hit, Selection, search
from spscanner_rag.retrieval.shared_scanners import ScorerChoice

_TEMPLATES = ("metadata_template", "metadata_separator", "text_template")


def _never() -> bool:
    return False


@dataclass(frozen=True, kw_only=True)
class SentenceSearch:
    """How texts are scanned, and which sentences are kept.

    Attributes
    ----------
    choice
        What scores; loaded by the first search.
    selection
        Which sentences are kept.
    batch_size
        Texts given to the scorer at a time.
    keep_retrieval_score
        Whether a sentence's metadata holds what its node was retrieved with.
    """

    choice: ScorerChoice
    selection: Selection
    batch_size: int
    keep_retrieval_score: bool

    def check(self) -> None:
        """Raise ``ValueError`` or ``TypeError`` for what could only fail later."""
        self.choice.check()
        if type(self.batch_size) is not int or self.batch_size < 1:
            raise ValueError(f"batch_size: got {self.batch_size!r}; expected a whole number of at least 1")
        scorer, selection = self.choice.scorer, self.selection
        uncounted = selection.max_tokens is not None and selection.count_tokens is None
        if uncounted and scorer is not None and not hasattr(scorer, "count_tokens"):
            raise ValueError(
                f"max_tokens: got {selection.max_tokens}, but {type(scorer).__name__} counts no tokens; "
                'expected count_tokens as well, for example count_tokens="o200k_base"'
            )

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        choice = self.choice
        if choice.scanner is not None:  # not its weights: what loads them again
            choice = choice._replace(scanner=None, **scanner_fields(choice.scanner))
        return _rebuilt, (choice, self.selection, self.batch_size, self.keep_retrieval_score)

    def __deepcopy__(self, memo: dict[int, object]) -> "SentenceSearch":
        return self  # immutable, and a scanner should not be in memory twice

    def __call__(
        self, query: str, readings: Sequence[Reading], cancelled: Callable[[], bool] = _never
    ) -> list[NodeWithScore]:
        """The best sentences of all readings together, as new nodes."""
        texts = [(text, reading) for reading in readings for text in reading.texts]
        if not texts:
            return []
        hits = search(
            self.choice.resolve(),
            query,
            [text for text, _ in texts],
            self.selection,
            batch_size=self.batch_size,
            cancelled=cancelled,
        )
        writer = _Writer(self.keep_retrieval_score)
        for hit in hits:
            reading = texts[hit.joined][1]
            writer.add(hit, reading.nodes[hit.place.piece], reading.scores[hit.place.piece])
        return writer.found


def _rebuilt(
    choice: ScorerChoice, selection: Selection, batch_size: int, keep_retrieval_score: bool
) -> SentenceSearch:
    return SentenceSearch(
        choice=choice,
        selection=selection,
        batch_size=batch_size,
        keep_retrieval_score=keep_retrieval_score,
    )


class _Writer:
    """Sentence nodes that share nothing with the nodes they come from, each with an id of its own."""

    def __init__(self, keep_retrieval_score: bool) -> None:
        self.keep_retrieval_score = keep_retrieval_score
        self.found: list[NodeWithScore] = []
        self._numbers: dict[str, int] = {}  # id -> its place in found
        self._hashes: dict[int, str] = {}  # of nodes, by identity: a document may be long

    def add(self, hit: Hit, node: BaseNode, retrieval_score: float | None) -> None:
        """Write one sentence; of two that are the same, the one with the higher score stays."""
        name = _sentence_id(hit, node)
        copy = 1
        unique = name
        while unique in self._numbers:
            number = self._numbers[unique]
            same = self.found[number]
            if same.node.get_content() == hit.text:
                if same.get_score() < hit.score:
                    self.found[number] = self._written(unique, hit, node, retrieval_score)
                return
            copy += 1
            unique = f"{name}#{copy}"
        self._numbers[unique] = len(self.found)
        self.found.append(self._written(unique, hit, node, retrieval_score))

    def _written(self, name: str, hit: Hit, node: BaseNode, retrieval_score: float | None) -> NodeWithScore:
        metadata = copied_metadata(node.metadata)
        metadata[LOGIT_KEY] = hit.logit
        if self.keep_retrieval_score and retrieval_score is not None:
            metadata[RETRIEVAL_SCORE_KEY] = retrieval_score
        source = related(node, NodeRelationship.SOURCE)
        sentence = TextNode(
            id_=name,
            text=hit.text,
            start_char_idx=hit.place.source_start,
            end_char_idx=hit.place.source_end,
            metadata=metadata,
            excluded_embed_metadata_keys=_with_own_keys(node.excluded_embed_metadata_keys),
            excluded_llm_metadata_keys=_with_own_keys(node.excluded_llm_metadata_keys),
            relationships={
                NodeRelationship.SOURCE: self._info(node) if source is None else _copied_info(source),
                NodeRelationship.PARENT: self._info(node),
            },
            **{key: getattr(node, key) for key in _TEMPLATES if hasattr(node, key)},
        )
        return NodeWithScore(node=sentence, score=hit.score)

    def _info(self, node: BaseNode) -> RelatedNodeInfo:
        if id(node) not in self._hashes:
            self._hashes[id(node)] = node.hash
        return RelatedNodeInfo(
            node_id=node.node_id,
            node_type=node.get_type(),
            metadata=copied_metadata(node.metadata),
            hash=self._hashes[id(node)],
        )


def _sentence_id(hit: Hit, node: BaseNode) -> str:
    place = hit.place
    if place.source_start is not None:
        return f"{place.source}:{place.source_start}-{place.source_end}"
    if place.piece_start is not None:
        return f"{node.node_id}:{place.piece_start}-{place.piece_end}"
    digest = sha256(hit.text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{node.node_id}:{digest[:16]}"


def _copied_info(info: RelatedNodeInfo) -> RelatedNodeInfo:
    return info.model_copy(update={"metadata": copied_metadata(info.metadata)})


def _with_own_keys(excluded: Sequence[str]) -> list[str]:
    return [*excluded, *(key for key in OWN_KEYS if key not in excluded)]
