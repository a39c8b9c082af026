"""Columns of passages, and the BM25 scores by which negatives are chosen."""

from pathlib import Path

import pytest

from spscanner_lab.evidence.questions import Document, Question
from spscanner_lab.training.data.document_store import DocumentStore
from spscanner_lab.training.data.passages import PassageDraw, bm25_scores
from spscanner_lab.training.recipe import Recipe, read_recipe
from spscanner_rag.baselines.unit_kinds import segmenter_of
from spscanner_rag.lexical.words import index_words

BIRDS = ("heron", "plover", "curlew", "swift", "wren", "robin", "linnet", "osprey")
EMBEDDER = Path(__file__).parents[4] / "examples" / "training" / "embedder.toml"


def test_bm25_scores_are_positive_where_a_word_is_shared() -> None:
    sentences = [
        "The red fox slept. ",
        "A fox ran. ",
        "The dog ran. ",
        "It was red. ",
        "Nothing else. ",
    ]
    scores = bm25_scores(index_words(sentences), "Where did the red foxes sleep?")
    assert scores.argmax() == 0
    assert (scores > 0).tolist() == [True, True, False, True, False]


def lake(number: int) -> Document:
    """A sentence for each bird; the only question is about one of them."""
    sentences = [
        f"The {bird} of lake {number} nests in {bird} reeds." for bird in BIRDS
    ]
    text = " ".join(sentences)
    start = text.index("The curlew")
    question = Question(
        str(number),
        f"Where does the curlew of lake {number} nest?",
        ((start, start + len(sentences[2])),),
    )
    return Document(str(number), "lakes", f"Lake {number}", text, (question,))


@pytest.mark.parametrize("random", [0, 2, 4])
def test_negatives_of_the_document_are_its_other_sentences(random: int) -> None:
    """Section 5.5 of the paper takes irrelevant sentences of the same document."""
    store = DocumentStore([lake(number) for number in range(6)])
    recipe = Recipe(
        stage="embedder",
        rerank_negatives=4,
        rerank_random=random,
        rerank_from="document",
    )
    passages = PassageDraw(store, recipe, segmenter_of("sentence"))
    drawn = set()
    for number in range(20):
        question, (right, *wrong) = passages.column(number)
        assert right.startswith("The curlew")
        assert len(set(wrong)) == 4
        name = question.removeprefix("Where does the curlew of ").partition(" nest")[0]
        for sentence in wrong:
            assert f" of {name} " in sentence
            assert "curlew" not in sentence
        drawn.update(wrong)
    assert len(drawn) > 20, "they are not always the same"


def test_the_recipe_of_an_embedder_takes_them_from_the_document() -> None:
    recipe = read_recipe(EMBEDDER)
    assert recipe.rerank_from == "document"
    assert recipe.rerank_negatives == recipe.rerank_random > 0
    with pytest.raises(ValueError, match="rerank_from is 'page'"):
        Recipe(rerank_from="page")
