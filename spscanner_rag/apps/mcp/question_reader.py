"""Reads documents for a question, and keeps what it read for the next answers."""

from collections.abc import Iterator
from hashlib import sha256
from threading import Lock

from spscanner_rag.apps.kept_values import KeptValues
from spscanner_rag.apps.mcp.answers import digest_of
from spscanner_rag.apps.mcp.progress import RequestProgress
from spscanner_rag.files.documents import TextFile
from spscanner_rag.results import ScanResult
from spscanner_rag.retrieval import Piece, ReadBounds, join_pieces
from spscanner_rag.retrieval.first_stage import choose_texts
from spscanner_rag.retrieval.held_texts import HeldTexts
from spscanner_rag.scan.prepared_document import PreparedDocument
from spscanner_rag.scanner import Scanner

READ_TOKENS = 200_000
"""Tokens read in a folder: its likeliest documents."""

COMPARED_TOKENS = 500_000
"""Tokens of the likeliest documents by words, which are then compared by meaning."""

HELD_CHARACTERS = 20_000_000
"""Most characters of the texts of answers that are kept in memory."""

PREPARED_BYTES = 256 * 2**20
"""Most bytes of documents that are prepared for further questions."""

ScannedTexts = list[tuple[TextFile, ScanResult]]
"""The documents read for a question, with the scores of their sentences."""


class QuestionReader:
    """Scores documents for questions, once for all answers to the same question."""

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner
        self._prepared = KeptValues[PreparedDocument](PREPARED_BYTES)
        # by digests of question and documents, in order of last use
        self._scans: dict[str, ScannedTexts] = {}
        # the folder that was searched last
        self._searched = HeldTexts()
        # a client that waits may find its question already answered for another
        self._lock = Lock()

    def scan(
        self,
        question: str,
        documents: list[TextFile],
        key: str,
        progress: RequestProgress,
    ) -> ScannedTexts:
        """Score the documents, or return the scores of an earlier answer.

        ``key`` is `key_of` the question and the documents.
        """
        with self._lock:
            scanned = self._scans.pop(key, None)
            if not scanned:
                scanned = self._scan(question, documents, progress)
            while self._held_characters() > HELD_CHARACTERS:
                del self._scans[next(iter(self._scans))]
            self._scans[key] = scanned
        return scanned

    def texts_without_file(self) -> Iterator[TextFile]:
        """The texts in memory that agents sent themselves."""
        for scanned in list(self._scans.values()):
            for document, _ in scanned:
                if not document.path:
                    yield document

    def _held_characters(self) -> int:
        total = 0
        for scanned in self._scans.values():
            total += sum(len(document.text) for document, _ in scanned)
        return total

    def _scan(
        self, question: str, documents: list[TextFile], progress: RequestProgress
    ) -> ScannedTexts:
        """Score all documents as one collection.

        If they are too many, only the likeliest ones are scored.
        """
        pieces: list[Piece] = []
        for number, document in enumerate(documents):
            pieces.append(Piece(text=document.text, key=str(number), source=number))
        searched = HeldTexts(join_pieces(pieces))
        bounds = ReadBounds(None, READ_TOKENS)
        chosen = documents
        collection = None
        if len(bounds.within(searched.tokens)) < len(searched.texts):
            searched = self._searched.with_texts(searched.texts)
            self._searched = searched
            chosen = self._likeliest(question, documents, bounds, progress)
            collection = searched.collection
        pairs: list[tuple[str, PreparedDocument]] = []
        for document in chosen:
            pairs.append((question, self._prepare(document, progress)))
        results = self._scanner.scan_many(
            pairs,
            together=collection is None,
            collection=collection,
            progress=progress.scanned,
            cancelled=progress,
        )
        return list(zip(chosen, results, strict=True))

    def _likeliest(
        self,
        question: str,
        documents: list[TextFile],
        bounds: ReadBounds,
        progress: RequestProgress,
    ) -> list[TextFile]:
        """The documents that are likeliest to answer, by words and by meaning."""
        searched = self._searched
        ranked = [number for number, _ in searched.ranking(question)]
        ranked += sorted(set(range(len(searched.texts))).difference(ranked))
        tokens = [searched.tokens[number] for number in ranked]
        compared = ReadBounds(None, COMPARED_TOKENS).within(tokens)
        likeliest = choose_texts(
            searched,
            question,
            bounds,
            [ranked[rank] for rank in compared],
            lambda: self._scanner.meaning,
            progress,
        )
        chosen: list[TextFile] = []
        for number, _ in likeliest:
            chosen.append(documents[searched.texts[number].placed[0].number])
        return chosen

    def _prepare(
        self, document: TextFile, progress: RequestProgress
    ) -> PreparedDocument:
        """Prepare a document, or take it from an earlier question."""
        content = (document.path, document.text, document.blocks, document.pages)
        key = sha256(repr(content).encode()).hexdigest()
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = self._scanner.prepare(document, cancelled=progress)
            self._prepared.put(key, prepared, prepared.nbytes)
        return prepared


def key_of(question: str, documents: list[TextFile]) -> str:
    """A digest of a question and of the documents that it is about."""
    parts = [question]
    for document in documents:
        parts += [document.path, document.text]
    return digest_of(*parts)
