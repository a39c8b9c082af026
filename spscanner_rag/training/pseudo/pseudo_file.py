"""Pseudo-questions of plain text files, made once and kept as a question file like any other."""

import json
from collections.abc import Sequence
from pathlib import Path

from spscanner_rag.evidence.questions import Document
from spscanner_rag.files.whole_file import whole_file
from spscanner_rag.training import Notify
from spscanner_rag.training.data.text_files import content_key, read_text_documents, sampled_documents
from spscanner_rag.training.pseudo.key_phrases import COUNTED_CHARACTERS, WordRarity
from spscanner_rag.training.pseudo.pseudo_queries import pseudo_documents
from spscanner_rag.training.recipe import Recipe

_FORMAT = "1"


def pseudo_question_file(
    texts: Sequence[Path], recipe: Recipe, folder: Path, notify: Notify = lambda message: None
) -> Path:
    """The question file of plain texts, in the format of ``--data``; written to the folder unless it is there.

    Its name stands for the content of the texts, the recipe's ``pseudo_…`` numbers and its seed. A message
    follows each text file.

    Raises
    ------
    DataError
        For a text file that cannot be read; names file and line.
    ValueError
        If no question could be made of the texts.
    """
    numbers = {key: value for key, value in recipe.to_dict().items() if key.startswith("pseudo_")}
    del numbers["pseudo_weight"]  # changes how questions are drawn, not how they are made
    path = folder / f"{content_key(texts, _FORMAT, str(recipe.seed), json.dumps(numbers))}.jsonl"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    rarity = WordRarity(sampled_documents(texts, COUNTED_CHARACTERS))
    total = 0
    with whole_file(path) as unfinished, unfinished.open("w", encoding="utf-8") as out:
        for number, file in enumerate(texts, 1):
            made = 0
            for document in pseudo_documents(read_text_documents([file]), rarity, recipe):
                out.write(json.dumps(_record(document)) + "\n")
                made += len(document.questions)
            total += made
            notify(f"pseudo-questions of {file.name}, {number} of {len(texts)} files: {made:,}")
        if not total:
            raise ValueError(
                f"{texts[0]}: no pseudo-question could be made; expected documents of several sentences"
            )
    return path


def _record(document: Document) -> dict[str, object]:
    """A document as a line of a question file."""
    keys = ("doc_id", "source", "title", "split", "text")
    questions = [
        {"qid": q.qid, "question": q.text, "evidence": q.evidence, "answerable": q.answerable}
        for q in document.questions
    ]
    return {key: getattr(document, key) for key in keys} | {"questions": questions}
