"""Search texts, and make documents of the best sentences, or of the documents that they stand in."""

from collections.abc import Callable, Sequence

from langchain_core.documents import Document

from langchain_spscanner._conversion import TextToScan, page_of
from langchain_spscanner._identity import digest, score_of, stable_name, start_of
from langchain_spscanner._scored import SCORE_KEY, ScoredDocument
from spscanner_rag.retrieval import (
    ID_KEY,
    Hit,
    KeptPiece,
    ReturnNodes,
    SentenceSearch,
    continued_metadata,
    copied_metadata,
    pruned_text,
    reduction_metadata,
    scores_metadata,
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
    kept = search.pieces(query, joined, cancelled, pruned=return_nodes == "pruned")
    if return_nodes == "node":
        return [_whole(piece, texts[piece.joined], keep_retrieval_score) for piece in kept]
    count = search.token_counter() if kept else None
    return [_pruned(piece, texts[piece.joined], keep_retrieval_score, count) for piece in kept]


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
    metadata |= {"start_index": start, "end_index": end, ID_KEY: identity}
    metadata |= continued_metadata(
        hit, text.joined, lambda piece: page_of(text.origin.documents[piece]), UNKNOWN
    )
    return ScoredDocument(page_content=hit.text, metadata=metadata, id=identity)


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
    document.metadata |= reduction_metadata(whole, document.page_content, count)
    return document


def _scores(hit: Hit, document: Document, text: TextToScan, keep_retrieval_score: bool) -> dict[str, float]:
    retrieval_score = score_of(document) if text.retrieval_score is None else text.retrieval_score
    kept_score = retrieval_score if keep_retrieval_score else None
    return {SCORE_KEY: hit.score} | scores_metadata(hit.logit, hit.document_score, kept_score)
