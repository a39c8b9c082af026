"""LIMIT and corpora like it, of any size: recall of the two persons that like a thing.

LIMIT (Weller et al. 2025, "On the Theoretical Limitations of Embedding-Based Retrieval") has short biographies
that list what a person likes. Each question names one thing, which two of the 46 persons like. A further person
likes 45 things that no question names, so a question keeps its two answers whatever the size of the corpus.
"""

import argparse
import json
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np

from spscanner_rag.checkpoint.whole_file import write_whole
from spscanner_rag.lab.evaluation.statistics import Sample, estimate, paired_test
from spscanner_rag.lab.evidence.metrics import recall_at
from spscanner_rag.lab.evidence.questions import Document, Question, read_documents
from spscanner_rag.lab.evidence.sampling import sample_questions
from spscanner_rag.lab.retriever_names import Options, scorer_of
from spscanner_rag.results.coverage import relevant_units
from spscanner_rag.scorers import Scorer, segment
from spscanner_rag.text.units import Unit

ITEMS = 45
CUTOFFS = (1, 2, 5, 10)


@dataclass(frozen=True, slots=True)
class Person:
    """A name and what the person likes."""

    name: str
    items: tuple[str, ...]

    @classmethod
    def of(cls, biography: str) -> "Person":
        """Read "NAME likes A, B and C."."""
        name, _, likes = biography.strip().partition(" likes ")
        head, _, last = likes.removesuffix(".").rpartition(" and ")
        return cls(name, (*head.split(", "), last))

    @property
    def biography(self) -> str:
        """As `of` reads it."""
        return f"{self.name} likes {', '.join(self.items[:-1])} and {self.items[-1]}."


def add_commands(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> list[argparse.ArgumentParser]:
    """Add `limit`."""
    command = commands.add_parser("limit", help="recall on LIMIT and on larger corpora like it, in percent")
    command.add_argument("--data", type=Path, required=True, metavar="FILE", help="LIMIT's small corpus")
    command.add_argument("--persons", type=int, nargs="+", default=[46, 500, 1000], metavar="N")
    command.add_argument("--retrievers", nargs="+", default=["bm25", "dense", "scanner"], metavar="NAME")
    command.add_argument("--questions", type=int, default=1000)
    command.add_argument("--seed", type=int, default=0)
    command.add_argument(
        "--write", type=Path, metavar="DIR", help="write each corpus as a question file, too"
    )
    command.set_defaults(measure=measure_limit)
    return [command]


def measure_limit(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Recall of both persons by each retriever on each corpus; there are no bounds."""
    (limit,) = read_documents([arguments.data])
    scorers = {name: scorer_of(name, Options(unit="passage")) for name in arguments.retrievers}
    rows: dict[str, object] = {}
    for persons in arguments.persons:
        corpus = enlarged(limit, persons, arguments.seed)
        if arguments.write is not None:
            arguments.write.mkdir(parents=True, exist_ok=True)
            write_whole(arguments.write / f"{corpus.doc_id}.jsonl", json.dumps(_record(corpus)) + "\n")
        (asked,) = sample_questions([corpus], arguments.questions, arguments.seed).values()
        first: Sample | None = None
        for name, scorer in scorers.items():
            ranked = _Ranked(scorer, corpus)
            started = time.perf_counter()
            recalls = [ranked.recall(question) for _, question in asked]
            seconds = (time.perf_counter() - started) / len(asked)
            means = {f"@{k}": 100 * statistics.mean(recall[k] for recall in recalls) for k in CUTOFFS}
            # all questions are asked of one text, so they are resampled, not the documents
            sample = Sample([recall[2] for recall in recalls], [question.qid for _, question in asked])
            low, high = estimate({"limit": sample}).low, estimate({"limit": sample}).high
            first = first or sample
            p = paired_test({"limit": first}, {"limit": sample}).p_value if sample is not first else 1.0
            interval = {
                "@2 from": 100 * (low or 0.0),
                "to": 100 * (high or 0.0),
                f"p to {arguments.retrievers[0]}": p,
            }
            rows[f"{persons} persons, {name}"] = means | interval | {"s/question": seconds}
    return rows, True


def enlarged(limit: Document, persons: int, seed: int = 0) -> Document:
    """LIMIT's corpus with further persons, all in random order; the questions keep their evidence.

    Raises ``ValueError`` for fewer persons than LIMIT has, or more than there are names for.
    """
    known = [Person.of(paragraph) for paragraph in limit.text.split("\n\n")]
    asked = {question.text.removeprefix("Who likes ").removesuffix("?") for question in limit.questions}
    free = sorted({item for person in known for item in person.items} - asked)
    draw = random.Random(f"{seed}-{persons}")
    names = _further_names([person.name for person in known], draw)
    if not len(known) <= persons <= len(known) + len(names):
        raise ValueError(f"persons is {persons}; expected {len(known)} to {len(known) + len(names):,}")
    further = [Person(name, tuple(draw.sample(free, ITEMS))) for name in names[: persons - len(known)]]
    everybody = [*known, *further]
    if further:
        draw.shuffle(everybody)
    text, spans = "", {}
    for person in everybody:
        text += "\n\n" if text else ""
        spans[person.name] = (len(text), len(text) + len(person.biography))
        text += person.biography
    questions = tuple(
        replace(question, evidence=tuple(sorted(spans[name] for name in question.answers)))
        for question in limit.questions
    )
    return Document(f"limit-{persons}", limit.source, limit.title, text, questions, limit.split)


def _further_names(known: Sequence[str], draw: random.Random) -> list[str]:
    """New names: a first name, mostly an initial, and a last name of the known ones."""
    firsts, lasts = sorted({name.split()[0] for name in known}), sorted({name.split()[-1] for name in known})
    middles = ["", *(f" {letter}." for letter in "ABEL")]
    names = [f"{first}{middle} {last}" for first, middle, last in product(firsts, middles, lasts)]
    fresh = sorted(set(names) - set(known))
    draw.shuffle(fresh)
    return fresh


class _Ranked:
    """A corpus cut into a scorer's units; a person has the score of the best unit that starts in the biography."""

    def __init__(self, scorer: Scorer, corpus: Document) -> None:
        text = corpus.text
        self._scorer, self._text = scorer, text
        self._units: Sequence[Unit] = segment(scorer, text)
        lengths = [len(paragraph) + 2 for paragraph in text.split("\n\n")]
        self._starts = np.cumsum([0, *lengths[:-1]])  # (persons,)
        self._person = np.searchsorted(self._starts, [unit.start for unit in self._units], side="right") - 1

    def recall(self, question: Question) -> dict[int, float]:
        """Recall of the persons, for each of `CUTOFFS`."""
        logits = self._scorer.score_units(question.text, self._text, self._units)
        best = np.full(len(self._starts), -np.inf)
        np.maximum.at(best, self._person, logits)
        stops = np.append(self._starts[1:], len(self._text))
        return recall_at(best, relevant_units(self._starts, stops, question.evidence), CUTOFFS)


def _record(document: Document) -> dict[str, object]:
    """A line of a question file."""
    questions = [
        {"qid": q.qid, "question": q.text, "answers": q.answers, "evidence": q.evidence}
        for q in document.questions
    ]
    own = {
        "doc_id": document.doc_id,
        "source": document.source,
        "split": document.split,
        "title": document.title,
    }
    return own | {"text": document.text, "questions": questions}
