"""The languages of questions, and of the parts of texts."""

import json
from pathlib import Path

import pytest

from spscanner_rag.text.language_parts import (
    UNKNOWN,
    is_english,
    part_languages,
    question_language,
)

PARALLEL = Path(__file__).resolve().parents[2] / "examples/data/parallel.jsonl"
ENGLISH_TEXT = [
    "The mill was founded by two brothers. ",
    "The river is not deep there.",
] * 10
TURKISH_TEXT = [
    "Değirmen iki kardeş tarafından kuruldu ve çok uzun bir süre çalıştı. ",
    "Nehir orada o kadar derin değil, ama onlar için bu yeterli oldu. ",
] * 10
SWAHILI_TEXT = [
    "Kinu kilianzishwa na ndugu wawili kutoka pwani mwaka huo. ",
    "Walichagua mahali hapo kwa sababu mto haugandi kamwe. ",
] * 10


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("Who signed the treaty?", "english"),
        ("Where was Melissa Gaboriau Auf der Maur born?", "english"),
        ("How big is Águas de São Pedro?", "english"),
        ("Men in Black II is a 1992 film.", "english"),
        ("treaty of Riga", "english"),
        ("treaty signature", UNKNOWN),
        ("1811?", UNKNOWN),
        ("Wer unterzeichnete den Vertrag?", "german"),
        ("Was ist DECnet?", "german"),
        ("¿Quién firmó el tratado?", "spanish"),
        ("Qui a signé le traité ?", "french"),
        ("Antlaşmayı kim imzaladı ve nerede?", "turkish"),
        ("Broncos'un Genel Müdürü kimdir?", "turkish"),
        ("Where was Erdoğan born?", "english"),
        ("In welchem Jahr starb Tesla?", "german"),
        ("Jiang Wen is an actor.", "english"),
        ("VAD improvements", UNKNOWN),
        ("¿Cuánta comida toma un ctenóforo en un día?", "spanish"),
        ("Ai hát quốc ca?", "vietnamese"),
        ("Ai đã ký hiệp ước này?", "vietnamese"),
        ("Ποιος υπέγραψε τη συνθήκη;", "greek"),
        ("Кто подписал договор?", "cyrillic"),
        ("संधि पर किसने हस्ताक्षर किए?", "devanagari"),
        ("ใครลงนามในสนธิสัญญา", "thai"),
        ("من وقع المعاهدة؟", "arabic"),
        ("Internet2是什么", "han"),
        ("What does 谢谢 mean?", "english"),
        ("DECnet是什么", "han"),
        ("Sky Movies和Sky Box office包含什么?", "han"),
        ("Los Angeles Angels of Anaheim มาจากกีฬาประเภทใด?", "thai"),
        ("Τι σημαίνει «Da Yuan Tong Zhi»;", "greek"),
        ("Who wrote 红楼梦?", "english"),
    ],
)
def test_a_question_has_a_language(question: str, language: str) -> None:
    assert question_language(question) == language


def test_texts_of_many_languages_are_not_english() -> None:
    for line in PARALLEL.read_text(encoding="utf-8").splitlines():
        page = json.loads(line)
        sentences = page["text"].split("\n\n")
        assert is_english(sentences) == page["source"].endswith("en"), page["doc_id"]
    assert not is_english(TURKISH_TEXT)
    assert not is_english(SWAHILI_TEXT)  # of which no stop words are known


def test_tables_and_code_are_read_as_english() -> None:
    assert is_english(["Bolt M6, 12.50, 400", "Nut M6, 3.20, 900"] * 40)
    assert is_english(["x = f(y)", "return z"])
    assert is_english([])


def test_a_text_that_changes_its_language_has_parts() -> None:
    mixed = [*ENGLISH_TEXT, *TURKISH_TEXT]
    languages = part_languages(mixed)
    assert languages[:15] == ["english"] * 15
    assert languages[-15:] == ["turkish"] * 15
    assert not is_english(mixed)
    # a quotation changes nothing
    assert is_english([*ENGLISH_TEXT, TURKISH_TEXT[0], *ENGLISH_TEXT])


def test_paragraphs_in_turns_have_their_own_languages() -> None:
    english = [
        "The tenant shall pay the rent on the first day of the month. ",
        "Payment is due in advance.\n\n",
    ]
    german = [
        "Der Mieter zahlt die Miete am ersten Tag des Monats. ",
        "Die Zahlung ist im Voraus zu leisten.\n\n",
    ]
    languages = part_languages([*english, *german] * 5)
    assert languages == ["english", "english", "german", "german"] * 5
    assert not is_english([*english, *german] * 5)


@pytest.mark.parametrize("language", ["zh", "ja"])
def test_half_a_text_without_white_space_is_half_of_its_words(language: str) -> None:
    texts = {}
    for line in PARALLEL.read_text(encoding="utf-8").splitlines():
        document = json.loads(line)
        texts[document["doc_id"]] = document["text"].split("\n")
    english = texts["station-en"]
    assert is_english(english)
    assert not is_english([*english, *texts[f"mill-{language}"]])
