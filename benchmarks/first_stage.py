"""How often the first stage of a corpus finds the right document, beside BM25 over passages by bm25s."""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from spscanner_rag.lab.evidence.questions import read_documents
from spscanner_rag.retrieval import JoinedText, Piece, join_pieces
from spscanner_rag.retrieval.corpus import Corpus

AT = (1, 5, 10, 20, 50)
PASSAGE_WORDS = 150

Rank = Callable[[str], Sequence[int]]


def add_commands(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> list[argparse.ArgumentParser]:
    """Add `first-stage`."""
    command = commands.add_parser(
        "first-stage", help="recall of the right document by the first stage, in percent"
    )
    command.add_argument(
        "--data", type=Path, nargs="+", required=True, metavar="FILE", help="questions with evidence"
    )
    command.add_argument("--questions", type=int, default=300, help="questions of each file")
    command.set_defaults(measure=measure_first_stage)
    return [command]


def measure_first_stage(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Recall@k of the right document among all documents of a file; there are no bounds."""
    rows: dict[str, object] = {}
    for path in arguments.data:
        documents = list(read_documents([path]))
        if len(documents) < 2:
            rows[path.parent.name] = f"not measured: {len(documents)} documents"
            continue
        asked = [
            (question.text, number)
            for number, document in enumerate(documents)
            for question in document.questions
            if question.answerable
        ]
        asked = asked[:: max(1, len(asked) // arguments.questions)]
        texts = [document.text for document in documents]
        corpus = corpus_of(texts)
        tokens = statistics.mean(corpus.tokens)
        own = {"documents": len(documents), "questions": len(asked), "tokens/doc": tokens}
        ranks = {"sentences": _ranked(corpus), "passages": _bm25s(texts)}
        for name, rank in ranks.items():
            rows[f"{path.parent.name}, {name}"] = own | _recall(rank, asked)
    return rows, True


def corpus_of(texts: Sequence[str]) -> Corpus:
    """Texts as a corpus, with their words counted."""
    return Corpus().with_texts(joined_texts(texts))


def joined_texts(texts: Sequence[str]) -> list[JoinedText]:
    """Each text as a document of its own."""
    return join_pieces([Piece(text=text, key=str(n), source=n, start=0) for n, text in enumerate(texts)])


def _ranked(corpus: Corpus) -> Rank:
    return lambda query: [number for number, _ in corpus.ranked(query)]


def _recall(rank: Rank, asked: Sequence[tuple[str, int]]) -> dict[str, float]:
    places, seconds = [], 0.0
    for query, right in asked:
        start = time.perf_counter()
        ranking = list(rank(query))
        seconds += time.perf_counter() - start
        places.append(ranking.index(right) if right in ranking else len(ranking) + max(AT))
    found = {f"@{k}": 100 * statistics.mean(place < k for place in places) for k in AT}
    return found | {"ms": 1000 * seconds / len(asked)}


def _bm25s(texts: Sequence[str]) -> Rank:
    """BM25 over passages of about 150 words, the best of each text."""
    import bm25s
    import numpy as np
    import Stemmer

    from spscanner_rag.lexical.languages import STOP_WORDS

    passages, owners = [], []
    for number, text in enumerate(texts):
        words = text.split()
        for first in range(0, len(words), PASSAGE_WORDS):
            passages.append(" ".join(words[first : first + PASSAGE_WORDS]))
            owners.append(number)
    owner = np.array(owners)
    stemmer = Stemmer.Stemmer("english")

    def tokens(strings: list[str]) -> list[list[str]]:
        found: list[list[str]] = bm25s.tokenize(
            strings, stopwords=sorted(STOP_WORDS), stemmer=stemmer, return_ids=False, show_progress=False
        )
        return found

    index = bm25s.BM25(k1=1.5, b=0.75)
    index.index(tokens(passages), show_progress=False)

    def rank(query: str) -> Sequence[int]:
        words = tokens([query])[0]
        if not words:
            return []
        scores = index.get_scores(words)
        best = np.zeros(len(texts))
        np.maximum.at(best, owner, scores)
        order = np.argsort(-best, kind="stable")
        ranked: list[int] = order[best[order] > 0].tolist()
        return ranked

    return rank
