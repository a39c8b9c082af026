"""Recipes without the newer keys keep drawing the examples that they always drew."""

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

from spscanner_rag.checkpoint.file_access import TOKENIZER
from spscanner_rag.checkpoint.tokenizer_file import read_tokenizer
from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.lab.training.data.documents import DocumentStore
from spscanner_rag.lab.training.data.examples import ExampleSource
from spscanner_rag.lab.training.data.stretches import Example
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lexical.match import MatchOptions
from spscanner_rag.scan.prepare import Reading
from spscanner_rag.text.segmentation import SentenceSegmenter

REPOSITORY = Path(__file__).parents[4]
BUNDLED = REPOSITORY / "spscanner_rag" / "checkpoint" / "bundled"
NOVEL = REPOSITORY / "examples" / "data" / "questions.jsonl"

QUESTIONS = {"persuasion-steps", "persuasion-engagement", "persuasion-property"}  # those that it ever drew
DIGESTS = {"plain": "768187e0ae89de53", "mixed": "c7d7f452f4c280fb"}


def chapters() -> list[Document]:
    """The chapters of the novel: two sources, with the novel's questions and one made for each chapter."""
    novel = json.loads(NOVEL.read_text(encoding="utf-8"))
    text = novel["text"]
    starts = [match.start() for match in re.finditer(r"^Chapter \d+$", text, re.M)]
    found = []
    for number, (start, stop) in enumerate(zip(starts, [*starts[1:], len(text)], strict=True), 1):
        questions = [
            Question(q["qid"], q["question"], tuple((a - start, b - start) for a, b in q["evidence"]))
            for q in novel["questions"]
            if q["qid"] in QUESTIONS and all(start <= a < b <= stop for a, b in q["evidence"])
        ]
        sentence = SentenceSegmenter().segment(text[start:stop])[7 * number % 40]
        words = sentence.model_text.split()[:6]
        questions.append(Question(f"made-{number}", " ".join(words), ((sentence.start, sentence.end),)))
        source = "odd" if number % 2 else "even"
        found.append(Document(f"chapter-{number}", source, "", text[start:stop], tuple(questions)))
    return found


def digest(examples: list[Example]) -> str:
    """Hash tokens, classes, labels and, rounded, the lexical scores."""
    found = hashlib.sha256()
    for example in examples:
        sequence = example.sequence
        assert sequence.match_classes is not None
        assert sequence.prior is not None
        for array in (sequence.input_ids, sequence.positions, sequence.match_classes, example.relevant):
            found.update(np.asarray(array, np.int64).tobytes())
        found.update((np.round(sequence.prior.astype(np.float64), 2) + 0.0).tobytes())
    return found.hexdigest()[:16]


@pytest.mark.parametrize("name", DIGESTS)
def test_a_recipe_draws_the_same_examples_as_ever(name: str) -> None:
    recipe = {
        "plain": Recipe(),
        "mixed": Recipe(unanswerable_share=0.3, random_place_share=0.3, spread_share=0.5, seed=3),
    }[name]
    reading = Reading(
        read_tokenizer(BUNDLED / TOKENIZER),
        SentenceSegmenter(),
        "last_character",
        256,
        True,
        True,
        MatchOptions(True, 300),
    )
    source = ExampleSource(DocumentStore(chapters()), reading, recipe)
    assert digest([source.example(number, 700) for number in range(12)]) == DIGESTS[name]
