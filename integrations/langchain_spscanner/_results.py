"""Search texts, and make documents of the best sentences, or of the documents that they stand in."""

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.documents import Document

from langchain_spscanner._conversion import TextToScan, page_of
from langchain_spscanner._identity import digest, score_of, stable_name, start_of
from langchain_spscanner._scored import (
    DOCUMENT_SCORE_KEY,
    LOGIT_KEY,
    RETRIEVAL_SCORE_KEY,
    SCORE_KEY,
    ScoredDocument,
)
from spscanner_rag.retrieval import (
    Hit,
    KeptPiece,
    ReturnNodes,
    SentenceSearch,
    copied_metadata,
    kept_pieces,
    pruned_text,
    reduction,
)
from spscanner_rag.scorers import Cancelled, never

UNKNOWN = -1  # as LangChain's splitters mark an offset that they cannot find


def results(
    search: SentenceSearch,
    query: str,
    texts: Sequence[TextToScan],
    return_nodes: ReturnNodes,
    keep_retrieval_score: bool,
    cancelled: Cancelled = never,
) -> list[Document]:
    """The best sentences of all texts together, or the documents that they stand in, as new documents."""
    joined = [text.joined for text in texts]
    if return_nodes == "sentence":
        hits = search(query, joined, cancelled)
        return [_sentence(hit, texts[hit.joined], keep_retrieval_score) for hit in hits]
    kept = kept_pieces(joined, search.unmerged()(query, joined, cancelled))
    if search.selection.order == "score":
        kept.sort(key=lambda piece: -piece.best.logit)
    if return_nodes == "node":
        return [_whole(piece, texts[piece.joined], keep_retrieval_score) for piece in kept]
    count = search.token_counter() if kept else None
    return [_pruned(piece, texts[piece.joined], keep_retrieval_score, count) for piece in kept if piece.spans]


def _sentence(hit: Hit, text: TextToScan, keep_retrieval_score: bool) -> Document:
    """A new document, which shares nothing with the one that contains the sentence."""
    place, document = hit.place, text.origin.documents[hit.place.piece]
    if place.source_start is not None and place.source_end is not None:
        start, end = place.source_start, place.source_end
        identity = f"{text.origin.source_names[place.piece]}:{start}-{end}"
    else:
        start = end = UNKNOWN
        within = digest(hit.text)
        if place.piece_start is not None and place.piece_end is not None:
            within = f"{place.piece_start}-{place.piece_end}"
            own_start = start_of(document)  # None, or contradicted by another chunk's
            if own_start is not None:
                start, end = own_start + place.piece_start, own_start + place.piece_end
        identity = f"{stable_name(document)}:{within}"
    metadata = copied_metadata(document.metadata) | _scores(hit, document, text, keep_retrieval_score)
    metadata |= {"start_index": start, "end_index": end, "spscanner_id": identity}
    return ScoredDocument(page_content=hit.text, metadata=metadata | _continued(hit, text), id=identity)


def _continued(hit: Hit, text: TextToScan) -> dict[str, Any]:
    """The last page that a sentence runs over to, and its span there; empty if it ends where it begins."""
    *_, last = text.joined.places(hit.start, hit.end)
    if last.source == hit.place.source:
        return {}
    return {
        "spscanner_continued_page": page_of(text.origin.documents[last.piece]),
        "spscanner_continued_start": UNKNOWN if last.source_start is None else last.source_start,
        "spscanner_continued_end": UNKNOWN if last.source_end is None else last.source_end,
    }


def _whole(kept: KeptPiece, text: TextToScan, keep_retrieval_score: bool) -> Document:
    document = text.origin.documents[kept.piece]
    metadata = copied_metadata(document.metadata) | _scores(kept.best, document, text, keep_retrieval_score)
    return ScoredDocument(page_content=document.page_content, metadata=metadata, id=document.id)


def _pruned(
    kept: KeptPiece, text: TextToScan, keep_retrieval_score: bool, count: Callable[[str], int] | None
) -> Document:
    document = _whole(kept, text, keep_retrieval_score)
    whole = document.page_content
    document.page_content = pruned_text(whole, text.joined, kept)
    document.metadata["spscanner_character_reduction"] = reduction(len, whole, document.page_content)
    if count is not None:
        document.metadata["spscanner_token_reduction"] = reduction(count, whole, document.page_content)
    return document


def _scores(hit: Hit, document: Document, text: TextToScan, keep_retrieval_score: bool) -> dict[str, float]:
    scores = {SCORE_KEY: hit.score, LOGIT_KEY: hit.logit, DOCUMENT_SCORE_KEY: hit.document_score}
    retrieval_score = score_of(document) if text.retrieval_score is None else text.retrieval_score
    if keep_retrieval_score and retrieval_score is not None:
        scores[RETRIEVAL_SCORE_KEY] = retrieval_score
    return scores
