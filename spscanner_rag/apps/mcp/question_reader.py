"""Reads documents for a question, and keeps what it read for the next answers."""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from sys import getsizeof
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.apps.mcp.answers import digest_of
from spscanner_rag.apps.mcp.identity import IdentifiedText
from spscanner_rag.apps.mcp.progress import RequestProgress
from spscanner_rag.apps.serving.limits import Limits
from spscanner_rag.apps.serving.reading_queue import Job, ReadingQueue
from spscanner_rag.files.documents import TextFile
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.results import ScanResult
from spscanner_rag.retrieval import Piece, ReadBounds, join_pieces
from spscanner_rag.retrieval.first_stage import ChosenText, choose_texts
from spscanner_rag.retrieval.held_texts import HeldTexts
from spscanner_rag.scan.meter import Meter
from spscanner_rag.scan.pipeline import Pipeline, ScannedText
from spscanner_rag.scan.prepared_document import PreparedDocument
from spscanner_rag.scan.requests import ScanRequest
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Cancelled, Read
from spscanner_rag.system.kept_values import KeptValues

T = TypeVar("T")

READ_TOKENS = 200_000
"""Tokens read in a folder: its likeliest documents."""

COMPARED_TOKENS = 500_000
"""Tokens of the likeliest documents by words, which are then compared by meaning."""

_ENTRY_BYTES = 4_000  # memory of an entry and of its objects without texts and arrays


class AgentQuestion(NamedTuple):
    """A question, what is read for it, and who asks: clients take turns."""

    text: str
    read: Read  # as for `Scanner.scan`
    client: str


ScannedTexts = list[tuple[IdentifiedText, ScanResult]]
"""The documents read for a question, with the scores of their sentences."""


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of a document's sentences, without its text.

    Parameters
    ----------
    number : int
        The index of the document among those of the question.
    starts, ends : array of int, (units,)
    logits : array of float32, (units,)
    answerable : float or None
    """

    number: int
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    logits: NDArray[np.float32]
    answerable: float | None

    @classmethod
    def of(cls, number: int, scanned: ScannedText) -> "Scores":
        """What is kept of a document that was scanned."""
        return cls(
            number,
            np.array(scanned.indexed.starts, np.int64),
            np.array(scanned.indexed.ends, np.int64),
            np.array(scanned.logits, np.float32),
            scanned.answerable,
        )

    @property
    def nbytes(self) -> int:
        """About how many bytes of memory they take."""
        arrays = self.starts.nbytes + self.ends.nbytes + self.logits.nbytes
        return arrays + _ENTRY_BYTES


@dataclass(frozen=True, slots=True)
class Chosen:
    """The documents that are read for a question, by their numbers.

    Parameters
    ----------
    numbers : sequence of int
    collection : CollectionIndex or None
        The words of all documents, if not all are read.
    """

    numbers: Sequence[int]
    collection: CollectionIndex | None = None


class QuestionReader:
    """Scores documents for questions, once for all answers to the same question.

    All that the model does goes through one queue, in which short questions do not wait
    for the end of long ones.
    """

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner
        self.queue = ReadingQueue(scanner.pipeline, Limits())
        # counts words, one folder after another
        self._counting = ThreadPoolExecutor(1, "spscanner-counting")
        self._prepared = KeptValues[PreparedDocument]()
        # by digests of question and documents
        self._scores = KeptValues[list[Scores]]()
        self._texts = KeptValues[IdentifiedText]()
        # the folder that was searched last
        self._searched = HeldTexts()

    def close(self) -> None:
        """Read the waiting jobs, and end the threads."""
        self.queue.close()
        self._counting.shutdown(cancel_futures=True)

    async def scan(
        self,
        question: AgentQuestion,
        texts: Sequence[IdentifiedText],
        key: str,
        progress: RequestProgress,
    ) -> ScannedTexts:
        """Score the documents, or return the scores of an earlier answer.

        ``key`` is `key_of` the question and the documents.
        """
        scores = self._scores.get(key)
        if scores is None:
            documents = [text.document for text in texts]
            chosen = await self._chosen(question, documents, progress)
            work = partial(self._read, question, documents, chosen)
            read_texts = [documents[number].text for number in chosen.numbers]
            scores = await self._worked(question, read_texts, work, progress)
            self._scores.put(key, scores, sum(score.nbytes for score in scores))
        for text in texts:
            if not text.document.path:
                size = getsizeof(text.document.text) + _ENTRY_BYTES
                self._texts.put(text.mark, text, size)
        scanned: ScannedTexts = []
        for document_scores in scores:
            text = texts[document_scores.number]
            scanned.append((text, self._result(question.text, text, document_scores)))
        return scanned

    def text_without_file(self, mark: str) -> IdentifiedText | None:
        """The text with this mark, if an agent sent it and it is still in memory."""
        return self._texts.get(mark)

    def _result(
        self, question: str, text: IdentifiedText, scores: Scores
    ) -> ScanResult:
        document = text.document
        return ScanResult(
            question,
            document.text,
            scores.starts,
            scores.ends,
            scores.logits,
            self._scanner.count_tokens,
            answerable=scores.answerable,
            document=document if document.path else None,
        )

    async def _worked(
        self,
        question: AgentQuestion,
        texts: Sequence[str],
        work: Callable[[Meter, Pipeline], T],
        progress: RequestProgress,
    ) -> T:
        """Have the queue do work on texts, at the turn that their size gives it."""
        requests = [ScanRequest(question.text, text) for text in texts]
        job = Job(
            requests, question.client, math.inf, progress=progress.scanned, work=work
        )
        self.queue.submit(job)
        future: Future[T] = job.future
        return await progress.awaited(future, job.cancel)

    async def _chosen(
        self,
        question: AgentQuestion,
        documents: Sequence[TextFile],
        progress: RequestProgress,
    ) -> Chosen:
        """Choose all documents or, if they are too many, the likeliest ones."""
        everything = Chosen(range(len(documents)))
        if len(documents) < 2:
            return everything
        counted = self._counting.submit(self._counted, documents, progress)
        searched = await progress.awaited(counted)
        if searched is None:
            return everything
        bounds = ReadBounds(None, READ_TOKENS)
        compared = _likeliest_by_words(question.text, searched)

        def choose(meter: Meter, pipeline: Pipeline) -> list[ChosenText]:
            return choose_texts(
                searched,
                question.text,
                bounds,
                compared,
                lambda: self._scanner,
                _asking(meter),
            )

        texts = [searched.texts[number].text for number in compared]
        likeliest = await self._worked(question, texts, choose, progress)
        numbers: list[int] = []
        for number, _ in likeliest:
            numbers.append(searched.texts[number].placed[0].number)
        return Chosen(numbers, searched.collection)

    def _counted(
        self, documents: Sequence[TextFile], progress: RequestProgress
    ) -> HeldTexts | None:
        """The documents with counts of their words.

        None if all of them are read.
        """
        progress.check()
        pieces: list[Piece] = []
        for number, document in enumerate(documents):
            pieces.append(Piece(text=document.text, key=str(number), source=number))
        searched = HeldTexts(join_pieces(pieces))
        bounds = ReadBounds(None, READ_TOKENS)
        if len(bounds.within(searched.tokens)) == len(searched.texts):
            return None
        self._searched = self._searched.with_texts(searched.texts)
        return self._searched

    def _read(
        self,
        question: AgentQuestion,
        documents: Sequence[TextFile],
        chosen: Chosen,
        meter: Meter,
        pipeline: Pipeline,
    ) -> list[Scores]:
        """Prepare and scan the chosen documents as one collection."""
        requests: list[ScanRequest] = []
        for number in chosen.numbers:
            prepared = self._prepare(documents[number], meter, pipeline)
            requests.append(pipeline.request_on(question.text, prepared))
        collection = chosen.collection
        scores: list[Scores] = []
        with closing(
            pipeline.run(requests, meter, collection, collection is None, question.read)
        ) as scanned_texts:
            for number, scanned in zip(chosen.numbers, scanned_texts, strict=True):
                scores.append(Scores.of(number, scanned))
        return scores

    def _prepare(
        self, document: TextFile, meter: Meter, pipeline: Pipeline
    ) -> PreparedDocument:
        """Prepare a document, or take it from an earlier question."""
        content = (document.path, document.text, document.blocks, document.pages)
        key = sha256(repr(content).encode()).hexdigest()
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = pipeline.reading.prepare(document, None, meter)
            self._prepared.put(key, prepared, prepared.nbytes + _ENTRY_BYTES)
        return prepared


def _likeliest_by_words(question: str, searched: HeldTexts) -> list[int]:
    """The documents that are compared by meaning, the likeliest by words first."""
    ranked = [number for number, _ in searched.ranking(question)]
    ranked += sorted(set(range(len(searched.texts))).difference(ranked))
    tokens = [searched.tokens[number] for number in ranked]
    ranks = ReadBounds(None, COMPARED_TOKENS).within(tokens)
    return [ranked[rank] for rank in ranks]


def _asking(meter: Meter) -> Cancelled:
    """A function that lets smaller jobs be read, and raises if nobody waits."""

    def cancelled() -> bool:
        meter.check()
        return False

    return cancelled


def key_of(question: AgentQuestion, texts: Sequence[IdentifiedText]) -> str:
    """A digest of a question, with its ``read``, and of the documents it is about."""
    parts = [question.text, str(question.read)]
    for text in texts:
        parts += [text.document.path, text.document.text]
    return digest_of(*parts)
