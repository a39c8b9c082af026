"""Telling a text's language by its words, and what follows from it."""

import json
from pathlib import Path

import numpy as np
import pytest

from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.lexical.lexical_scores import PLAIN_MATCH
from spscanner_rag.lexical.match import match_query
from spscanner_rag.lexical.words import (
    index_words,
    query_stems,
    query_words,
    words_apart,
)
from spscanner_rag.text.languages import (
    CJK,
    ENGLISH,
    STOP_WORDS,
    STOP_WORDS_OF,
    language_code,
)

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"
NO_TOKENS = np.zeros(0, np.int32)

GERMAN = [
    "Die Mühle wurde von zwei Brüdern gegründet. ",
    "Der Fluss ist dort nicht sehr tief, und sie fuhren über ihn.",
]
CHINESE = ["洪水冲毁了两个水车。", "弟弟想要放弃。"]
ENGLISH_TEXT = [
    "The mill was founded by two brothers. ",
    "The river is not deep there.",
]


def documents(name: str) -> list[dict[str, str]]:
    return [
        json.loads(line)
        for line in (DATA / name).read_text(encoding="utf-8").splitlines()
    ]


@pytest.mark.parametrize(
    "page", documents("parallel.jsonl"), ids=lambda page: page["doc_id"]
)
def test_each_language_is_told(page: dict[str, str]) -> None:
    expected = {"en": ENGLISH, "de": "german", "fr": "french", "zh": CJK, "ja": CJK}
    assert (
        index_words(page["text"].split("\n\n")).language
        == expected[page["source"][-2:]]
    )


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (
            (
                "El barco se hundió en la tormenta, pero los marineros que estaban con"
                " él no murieron."
            ),
            "spanish",
        ),
        (
            (
                "La nave affondò nella tempesta, ma i marinai che erano con lui non"
                " sono morti."
            ),
            "italian",
        ),
        (
            (
                "O navio afundou na tempestade, mas os homens que estavam com ele não"
                " morreram."
            ),
            "portuguese",
        ),
        (
            (
                "Het schip zonk in de storm, maar de mannen die bij hem waren zijn niet"
                " gestorven."
            ),
            "dutch",
        ),
        (
            (
                "Skeppet sjönk i stormen, men de män som var med honom dog inte och det"
                " är bra."
            ),
            "swedish",
        ),
        (
            (
                "Корабль затонул, но люди, которые были с ним, не погибли, и они"
                " вернулись к нам."
            ),
            "russian",
        ),
    ],
)
def test_one_sentence_is_enough(text: str, language: str) -> None:
    assert index_words([text]).language == language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "…",
        "Los Angeles, Las Vegas, El Paso, San Diego, La Jolla, Del Mar",
        "d l n s m c j t y a à",  # names in formulas
        "def der(die, das): return die[das] + der(die, das)",
        "Wo ist das?",  # too short to be sure
        "東京 is the capital of 日本, where the emperor lives.",
        (
            "He shouted: was ist das? and then he went to the house of the man who had"
            " asked him."
        ),
    ],
)
def test_what_is_not_clearly_another_language_is_english(text: str) -> None:
    assert index_words([text]).language == ENGLISH


def test_every_english_example_is_english() -> None:
    novel = (DATA / "persuasion.txt").read_text(encoding="utf-8")
    paragraphs = [
        *novel.split("\n\n"),
        *(p for page in documents("saltmere.jsonl") for p in page["text"].split("\n")),
    ]
    assert {index_words([text]).language for text in [novel, *paragraphs]} == {ENGLISH}


def test_stems_are_those_of_the_language() -> None:
    assert query_stems("Welche Brüder kauften die Häuser?", "german") == (
        "brud",
        "kauf",
        "haus",
    )
    words = index_words(GERMAN)
    assert words.of_stem["brud"] == [words.vocabulary.index("brüdern")]
    assert "brud" not in index_words(GERMAN, ENGLISH).of_stem


def test_an_english_question_loses_its_english_stop_words() -> None:
    assert query_words("Who was the founder of the Mühle?", "german") == (
        "founder",
        "mühle",
    )


def test_pairs_of_characters_are_words_with_their_places() -> None:
    text = "東京は2007年。犬 iPhone"
    words = index_words([text], CJK)
    found = [
        text[start:end] for start, end in zip(words.starts, words.ends, strict=True)
    ]
    assert found == ["東京", "京は", "2007", "年", "犬", "iPhone"]
    assert words_apart(text, CJK) == " ".join(found)


def test_a_chinese_question_finds_its_sentence() -> None:
    scores = match_query(
        index_words(CHINESE), "洪水冲毁了什么？", NO_TOKENS, NO_TOKENS
    ).scores[:, 0]
    assert scores[0] > scores[1]
    asked_as_english = match_query(
        index_words(CHINESE, ENGLISH), "洪水冲毁了什么？", NO_TOKENS, NO_TOKENS
    ).scores
    assert asked_as_english[0, 0] == asked_as_english[1, 0]


def test_each_text_of_a_mixed_collection_is_ranked_in_its_own_language() -> None:
    texts = [ENGLISH_TEXT, GERMAN, CHINESE]
    index = CollectionIndex.of(texts)
    assert index.languages == [ENGLISH, CJK, "german"]
    assert index.best_texts("Welcher Bruder?")[0][0] == "1"
    assert index.best_texts("谁想放弃？")[0][0] == "2"
    alone = CollectionIndex.of([ENGLISH_TEXT, ENGLISH_TEXT])
    alone.add("german", GERMAN)
    before = alone.statistics("Who founded the mills?", PLAIN_MATCH)
    assert before.language == ENGLISH
    assert len(before.idf) == len(query_stems("Who founded the mills?"))


def test_a_saved_index_knows_the_languages() -> None:
    arrays = CollectionIndex.of([GERMAN, CHINESE, ENGLISH_TEXT]).to_arrays()
    index = CollectionIndex.from_arrays(arrays)
    assert index.languages == [ENGLISH, CJK, "german"]
    assert index.statistics("Brüder", PLAIN_MATCH, "german").language == "german"
    index.remove("0")
    assert index.languages == [ENGLISH, CJK]


def test_stop_words_are_lower_case() -> None:
    assert STOP_WORDS_OF[ENGLISH] == STOP_WORDS
    assert len(STOP_WORDS_OF) == 27
    assert {"the", "who", "was"} <= STOP_WORDS
    assert not {"signed", "not_a_word", "year", "may"} & STOP_WORDS
    for language, words in STOP_WORDS_OF.items():
        for word in words:
            assert word == word.lower(), language
            assert any(map(str.isalpha, word)), language  # vowel signs are not


TURKISH = (
    "Yirminci yüzyılın başında kurulan değirmen, nehrin kıyısında yaşayan iki"
    " kardeş tarafından yönetiliyordu. Büyük kardeş hesapları tutuyor, küçük kardeş"
    " ise köylere un taşıyordu. Sel baskınından sonra iki su çarkı da yıkıldı, ancak"
    " kardeşler aynı yıl içinde yeniden başladılar. Daha sonra değirmen belediye için"
    " elektrik üretti ve bugün müze olarak kullanılıyor. Ziyaretçiler eski taşları ve"
    " ahşap dişlileri görebiliyor, çocuklar için de küçük bir atölye bulunuyor."
)
TABLE = "Port Los Angeles; Port San Diego; Port Rotterdam; " * 20


def test_a_language_of_few_stop_words_is_told_where_nothing_is_english() -> None:
    assert language_code(TURKISH) == "tr"
    assert (
        language_code(f"{TURKISH} " + "It was said that he is the one. " * 20) == "en"
    )
    assert language_code(TABLE) == "en"
