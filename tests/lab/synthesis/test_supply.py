"""From documents to sub-documents: sizes, sentence ends, filters, ids, positions."""

import itertools
from collections import Counter
from dataclasses import replace

import pytest

from spscanner_lab.evidence.questions import Document
from spscanner_lab.synthesis.language_detection import LanguageDetector
from spscanner_lab.synthesis.settings import SynthesisSettings
from spscanner_lab.synthesis.supply import Supply
from tests.fakes import words
from tests.lab.synthesis.conftest import SETTINGS, story


def document(number: int, sentences: int = 60, text: str | None = None) -> Document:
    return Document(
        f"d{number}", "s", "", story(number, sentences) if text is None else text, ()
    )


def test_sizes_come_equally_often_and_end_at_sentences() -> None:
    chosen = SynthesisSettings(sizes=(200, 500, 1000), language_probability=0)
    supply = Supply(chosen, words)
    subs = list(supply.of(document(number, 90) for number in range(30)))
    assert Counter(sub.size for sub in subs) == {200: 10, 500: 10, 1000: 10}
    assert [sub.number for sub in subs] == list(range(30))
    starts = [int(sub.doc_id.partition("@")[2]) for sub in subs]
    for number, (start, sub) in enumerate(zip(starts, subs, strict=True)):
        assert story(number, 90)[start : start + len(sub.text)] == sub.text
        assert sub.text.endswith("winter came.")
        assert 0.6 * sub.size < sub.tokens <= sub.size
        assert all(
            sub.text[s.start : s.end].startswith("In year") for s in sub.sentences
        )
    assert len(set(starts)) > 20  # starts are drawn


def test_several_of_one_document_do_not_overlap() -> None:
    chosen = replace(SETTINGS, sizes=(200,), weights=(1.0,), per_document=4)
    subs = list(Supply(chosen, words).of([document(1, 100)]))
    assert len(subs) == 4
    spans = sorted((int(sub.doc_id.partition("@")[2]), len(sub.text)) for sub in subs)
    assert all(
        start + length <= after
        for (start, length), (after, _) in itertools.pairwise(spans)
    )


def test_what_is_left_out_and_why() -> None:
    supply = Supply(SETTINGS, words)
    texts = [
        " \n",
        "Too short.",
        story(1),
        story(1).upper().replace(" ", "\n"),
        story(2),
    ]
    subs = list(supply.of(document(n, text=text) for n, text in enumerate(texts)))
    assert len(subs) == 2
    assert supply.left_out == {"empty": 1, "too short": 1, "a duplicate": 1}
    assert supply.documents == 5
    subs = list(supply.of(replace(document(n), doc_id="d") for n in (1, 2, 3)))
    assert [sub.doc_id.partition("@")[0] for sub in subs] == ["d", "d~2", "d~3"]


@pytest.mark.slow
def test_other_languages_are_left_out() -> None:
    pytest.importorskip("py3langid")
    detector = LanguageDetector()
    german = (
        "Die Königin ging am Morgen in den Garten und zählte dort die Äpfel der alten"
        " Bäume. " * 40
    )
    english = " ".join(
        f"The queen went into the garden in the morning and counted {n} apples of the"
        " old trees."
        for n in range(40)
    )
    supply = Supply(replace(SETTINGS, language_probability=0.8), words, detector)
    list(supply.of([document(0, text=german), document(1, text=english)]))
    assert supply.left_out == {"in another language": 1}
    assert detector.is_other("Wer hat im Winter die Schachteln gezählt?", "en")
    for short in (
        "Who wrote Faust?",
        "Which duty does section 12 impose on Borealis Energy?",
        "42?",
    ):
        assert not detector.is_other(short, "en")


def test_licences_are_left_out() -> None:
    licence = (
        "Permission is hereby granted, free of charge, to any person obtaining copy"
        " number {0}. The software is provided as is, without warranty of any kind. It"
        " was written by the keepers of house {0}. "
    )
    supply = Supply(SETTINGS, words)
    text = "".join(map(licence.format, range(40)))
    assert len(list(supply.of([document(0, text=text), document(1)]))) == 1
    assert supply.left_out == {"licences and copyright notices": 1}
    assert (
        len(
            list(
                Supply(replace(SETTINGS, boilerplate=False), words).of(
                    [document(0, text=text)]
                )
            )
        )
        == 1
    )
