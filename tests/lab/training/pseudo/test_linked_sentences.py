import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.lab.training.pseudo.key_phrases import WordRarity
from spscanner_rag.lab.training.pseudo.linked_sentences import LEAST_APART, linked_questions
from spscanner_rag.lab.training.pseudo.pseudo_queries import pseudo_documents
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.text.segmentation import SentenceSegmenter

FILLER = "Nobody on the island wrote about {} that winter."
BETWEEN = [FILLER.format(what) for what in ("rain", "boats", "sheep", "fences", "letters", "lamps", "songs")]
KEEPER = "The old keeper repaired a broken lantern with Tarbert after supper."
SHIP = "Two years later the schooner brought Tarbert to Lisbon with a cargo of oranges."
TEXT = " ".join([KEEPER, *BETWEEN, SHIP])

COMMON = WordRarity(
    Document(str(number), "notes", "", "Nobody wrote about the island that winter, as usual.", ())
    for number in range(60)
)


def sentences(text: str) -> list[tuple[int, int]]:
    return [(unit.start, unit.end) for unit in SentenceSegmenter().segment(text)]


def linked(text: str, seed: int = 0, count: int = 3, rarity: WordRarity = COMMON) -> list[Question]:
    return linked_questions(text, sentences(text), count, random.Random(seed), rarity)


def test_two_sentences_with_a_rare_name_are_the_evidence() -> None:
    questions = [question for seed in range(20) for question in linked(TEXT, seed)]
    assert len(questions) == 20  # one for each draw: no other word links two sentences
    for question in questions:
        assert [TEXT[start:end] for start, end in question.evidence] == [KEEPER, SHIP]
        assert question.qid == "linked"
        assert question.text.endswith("?")


def test_the_question_has_words_of_one_sentence_and_asks_for_something_of_the_other() -> None:
    asked, with_term = set(), 0
    for seed in range(40):
        (question,) = linked(TEXT, seed)
        first, second = question.text.rstrip("?").split(": ")
        kind = re.match("who or what|which year|how many", second)
        assert kind is not None
        asked.add(second.removeprefix(kind.group()).strip())
        clue, rest = set(first.split()), set(second.removeprefix(kind.group()).split())
        with_term += "Tarbert" in clue
        places = [set(re.findall(r"\w+", sentence)) for sentence in (KEEPER, SHIP)]
        clue.discard("Tarbert")
        assert any(clue <= one and rest <= other for one, other in (places, places[::-1]))
        assert 2 <= len(clue) <= 4
        assert 2 <= len(rest) <= 4
    assert len(asked) > 10
    assert 10 < with_term < 30


@pytest.mark.parametrize(
    "text",
    [
        " ".join([KEEPER, *BETWEEN[: LEAST_APART - 2], SHIP]),  # too near each other
        " ".join([KEEPER, *BETWEEN, SHIP.replace("Tarbert", "Campbell")]),  # nothing in common
        TEXT.replace("Tarbert", "winter"),  # a common word
        TEXT.replace("with Tarbert", "as usual, with Tarbert") + f" {SHIP}" * 12,  # in too many sentences
        "",
    ],
)
def test_without_a_rare_term_in_far_apart_sentences_there_is_no_question(text: str) -> None:
    assert linked(text) == []


def test_a_word_that_only_begins_sentences_is_no_name() -> None:
    rarity = WordRarity(Document(str(n), "notes", "", "Whatever." if n < 6 else "So.", ()) for n in range(60))
    text = " ".join([f"Whatever {KEEPER.replace('Tarbert', 'Anna')}", *BETWEEN, f"Whatever {SHIP}"])
    assert linked(text, rarity=rarity) == []
    named = text.replace("Nobody on the island wrote about lamps", "Nobody on Whatever wrote about lamps")
    assert 2.0 < rarity.idf("whatever") < 4.0
    texts = {question.text for seed in range(10) for question in linked(named, seed, rarity=rarity)}
    assert any("Whatever" in question for question in texts)


def test_no_pair_of_sentences_is_asked_for_twice_and_the_same_seed_gives_the_same() -> None:
    text = " ".join(
        [KEEPER.replace("lantern", "Ellis lantern"), *BETWEEN, SHIP.replace("Two", "Ellis and two")]
    )
    assert len(linked(text)) == 1
    assert linked(text, 5) == linked(text, 5)
    assert len({linked(text, seed)[0].text for seed in range(10)}) > 1
    assert linked(text, count=0) == []


def test_documents_get_linked_questions_if_the_recipe_wants_them() -> None:
    documents = [Document(str(n), "notes", "", f"{TEXT} It was year {n}.", ()) for n in range(3)]
    for most in (0, 1):
        recipe = Recipe(pseudo_linked=most, pseudo_negatives=0)
        for made in pseudo_documents(documents, COMMON, recipe):
            assert [question.qid.rsplit("-", 1)[1] for question in made.questions].count("linked") == most


@given(st.text(alphabet="AaBb .?\n1'-é", max_size=300), st.integers(0, 5))
def test_any_text_is_taken(text: str, seed: int) -> None:
    spans = sentences(text)
    for question in linked(text, seed, rarity=WordRarity([])):
        assert len(question.evidence) == 2
        assert set(question.evidence) <= set(spans)
