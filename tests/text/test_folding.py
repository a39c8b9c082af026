"""Words that look alike are read alike, and spans stay those of the original text."""

import re
import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from spscanner_rag import Scanner
from spscanner_rag.baselines import BM25
from spscanner_rag.checkpoint import ScannerSettings
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.lexical.words import index_words, query_words
from spscanner_rag.scan.reading import Reading
from spscanner_rag.text.folding import fold_texts, folded
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Unit

FORMS = ("NFC", "NFD", "NFKC", "NFKD")


IGNORABLE = [  # Default_Ignorable_Code_Point, as Unicode 16 lists it
    *range(0xAD, 0xAE), 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B,
    0x1810),
    *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0x3164,
    *range(0xFE00, 0xFE10),
    0xFEFF, 0xFFA0, *range(0xFFF0, 0xFFF9), *range(0x1BCA0, 0x1BCA4),
    *range(0x1D173, 0x1D17B), *range(0xE0000, 0xE1000),
]  # fmt: skip


COMPATIBLE = [
    code
    for code in range(sys.maxunicode + 1)
    if unicodedata.decomposition(chr(code)).startswith("<")
]


TEXT = (
    "The café of the old mill opened in May. An official of the coffee guild fined the"
    " baker five crowns. Fluffy sheep grazed behind the château. Nobody came to the"
    " auction of the flour sacks."
)


QUESTION = "Who fined the baker?"


def other_writings(text: str) -> dict[str, str]:
    ligatures = text
    for ligature, letters in (("ﬃ", "ffi"), ("ﬀ", "ff"), ("ﬁ", "fi"), ("ﬂ", "fl")):
        ligatures = ligatures.replace(letters, ligature)
    return {
        "NFC": unicodedata.normalize("NFC", text),
        "NFD": unicodedata.normalize("NFD", text),
        "soft hyphens": re.sub(
            r"([aeiouy])([b-df-hj-np-tv-z])(?=[a-z])", "\\1\u00ad\\2", text
        ),
        "zero-width": re.sub(r"(?<=\w)(?=\w)", "\u200b", text),
        "directions": re.sub(r"(\w+)", "\u2068\\1\u2069", text),
        "ligatures": ligatures,
        "full-width": "".join(
            chr(ord(c) + 0xFEE0) if c.isascii() and c.isalnum() else c for c in text
        ),
        "bold": "".join(
            chr(ord(c) - 97 + 0x1D41A) if "a" <= c <= "z" else c for c in text
        ),
        "no-break spaces": text.replace(" f", "\u00a0f"),
    }


@pytest.mark.parametrize("written", list(other_writings(TEXT)))
def test_the_scores_of_a_text_do_not_depend_on_how_it_is_written(
    bundled: Scanner, written: str
) -> None:
    text, plain = other_writings(TEXT)[written], bundled.scan(QUESTION, TEXT)
    result = bundled.scan(QUESTION, text)
    assert all(text[each.start : each.end] == each.text for each in result.sentences)
    scores = [[each.score for each in one.sentences] for one in (result, plain)]
    assert np.abs(np.subtract(*scores)).max() <= 0.02
    asked = other_writings(QUESTION)[written]
    assert np.abs(bundled.scan(asked, TEXT).logits - plain.logits).max() < 1e-4


@pytest.mark.parametrize("written", list(other_writings(TEXT)))
def test_words_and_searches_find_it(written: str) -> None:
    text = other_writings(TEXT)[written]
    units, plain = (SentenceSegmenter().segment(each) for each in (text, TEXT))
    assert index_words([text]).vocabulary == index_words([TEXT]).vocabulary
    assert query_words(text) == query_words(TEXT)
    index = CollectionIndex.of([[text], ["The mill burned down."]])
    assert index.best_texts("Which official of the château?")[0][0] == "0"
    scores = BM25().raw_scores("coffee official", text, units)
    assert np.allclose(scores, BM25().raw_scores("coffee official", TEXT, plain))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("l\u2019e\u0301te\u0301, l\u2018été, lʼété", "l'été, l'été, l'été"),
        (
            "a re\u2010read, non\u2011stop, 1914\u20131918, \u22125",
            "a re-read, non-stop, 1914-1918, -5",
        ),
        ("Acme™ sold 3½ tons at 20℃", "Acme TM sold 3 1/2 tons at 20 °C"),
        ("①Open ②Close", "1 Open 2 Close"),
        (
            "5 km² of CO₂ in Riga³ and it fell.⁴",
            "5 km2 of CO2 in Riga 3 and it fell. 4",
        ),
        ("ﬁ Ⅳ ａｂ　ｃ ｶﾞ ſo", "fi IV ab c ガ so"),
        ("ŉ ﹣ ＇ a—b", "'n - ' a-b"),
        ("ภาษา\u200bไทย", "ภาษา ไทย"),
        ("\u0301\u0323 alone", "\u0323\u0301 alone"),
        ("\ud800 \udfff", "\ud800 \udfff"),
        ("\u200b\u00ad", "\u200b\u00ad"),  # nothing else would be left to read
    ],
)
def test_a_text_as_it_is_read(text: str, read: str) -> None:
    assert folded(text) == read


def test_divided_words_are_joined_by_what_the_document_has() -> None:
    assert fold_texts(["The bishop conse-\ncrated it. ",
    "A well-\nknown, well-known man"]) == [
        "The bishop consecrated\nit. ", "A well-known,\nwell-known man"
    ]  # fmt: skip
    assert index_words(["They conse-\ncrated it."]).vocabulary == [
        "they",
        "consecrated",
        "it",
    ]


def test_plain_text_is_the_same_object() -> None:
    texts = ["A cat - or two -\nsat. ", "1914-\n18"]
    assert fold_texts(texts) is texts or list(fold_texts(texts)) == texts
    assert folded(texts[0]) is texts[0]


any_text = st.text(
    st.one_of(
        st.sampled_from([chr(code) for code in (*IGNORABLE, *COMPATIBLE)]),
        st.sampled_from("ae\u0301\u0323\u0308. '\n-ᄀ\u1161\u11a8가นи"),
        st.characters(codec=None),
    ),
    max_size=40,
)


@settings(max_examples=40)
@given(any_text)
@example("\u1161\u200b\u0301")
def test_folding_again_changes_nothing(text: str) -> None:
    assert folded(folded(text)) == folded(text)
    assert folded(text).strip() or not text.strip()


@settings(max_examples=40)
@given(any_text, st.sampled_from(FORMS))
def test_words_lie_where_tokens_and_spans_are(
    tiny_tokenizer: Tokenizer, text: str, form: str
) -> None:
    assert_read(tiny_tokenizer, text)
    assert_read(tiny_tokenizer, unicodedata.normalize(form, text))


@pytest.mark.parametrize(
    "codes", [IGNORABLE, COMPATIBLE], ids=["ignorable", "compatible"]
)
def test_every_ignorable_and_compatible_character(
    tiny_tokenizer: Tokenizer, codes: list[int]
) -> None:
    text = " ".join(f"Wo{chr(code)}rd {chr(code)} c{chr(code)}." for code in codes)
    for each in {text, *(unicodedata.normalize(form, text) for form in FORMS)}:
        assert_read(tiny_tokenizer, each)
    if codes is IGNORABLE:
        assert set(index_words([text]).vocabulary) == {"word", "c"}
    for code in codes:
        assert folded(folded(chr(code) + "a")) == folded(chr(code) + "a")


def assert_read(tokenizer: Tokenizer, text: str) -> None:
    own = Reading(tokenizer, SentenceSegmenter(), ScannerSettings(match=True))
    prepared, given = own.index_text(text), SentenceSegmenter().segment(text)
    spans = list(zip(prepared.starts.tolist(), prepared.ends.tolist(), strict=True))
    assert spans == [(unit.start, unit.end) for unit in given]
    read = "".join(prepared.sentences)
    words = prepared.words
    found = [
        read[start:end].lower()
        for start, end in zip(words.starts, words.ends, strict=True)
    ]
    assert found == [words.vocabulary[number] for number in words.numbers]
    assert len(prepared.unit_ends) == len(given)
    assert all(
        0 <= end < len(prepared.input_ids) for end in prepared.unit_ends.tolist()
    )


@pytest.mark.parametrize(
    "text", ["\u200b\u00ad\u2060", "\u0301" * 50, "\u0301. \u0301a. \u0308"]
)
def test_a_text_of_only_ignorable_or_combining_characters_is_scanned(
    bundled: Scanner, text: str
) -> None:
    assert [each.text for each in bundled.scan("Who?", text).sentences]
    assert len(bundled.scan("\u200b?", TEXT).sentences) == 4


def test_a_published_scanner_reads_every_letter_as_it_is(
    tiny_tokenizer: Tokenizer,
) -> None:
    text = "Die Müh\u00adle ﬁel.\nCafe\u0301."
    units = [Unit(0, len(text), text)]
    own = Reading(tiny_tokenizer, SentenceSegmenter(), ScannerSettings("reference"))
    assert own.index_text(text, units).sentences == [text]
    question = own.pair("ﬁn?", own.index_text(text, units)).question_ids
    assert question.tolist() == tiny_tokenizer.encode("ﬁn?\n").ids


@pytest.mark.slow
@pytest.mark.parametrize(
    "hostile",
    ["\u00ad", "e\u0301", "\u0301", "ﷺ", "’", "a-\n", "①a", "\u200b\n", "³.a"],
)
def test_the_time_is_linear(hostile: str) -> None:
    text = hostile * (600_000 // len(hostile))
    assert len(fold_texts([text])[0]) <= 18 * len(text)
