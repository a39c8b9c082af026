"""From documents to sub-documents: sizes, sentence ends, filters, ids, positions."""

import gzip
import itertools
import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document as LangChainDocument
from llama_index.core.schema import Document as LlamaIndexDocument

from spscanner_lab.evidence.data_lines import DataError
from spscanner_lab.evidence.questions import Document
from spscanner_lab.synthesis.sub_documents import (
    LanguageDetector,
    Sentence,
    Supply,
    SynthesisSettings,
    framework_documents,
    joined_units,
    read_sources,
    source_files,
)
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


@settings(max_examples=50)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=40), st.integers(1, 50))
def test_units_hold_every_sentence_and_enough_tokens(
    tokens: list[int], least: int
) -> None:
    sentences = tuple(
        Sentence(10 * n, 10 * n + 9, count) for n, count in enumerate(tokens)
    )
    units = joined_units(sentences, least)
    held = [
        [s for s in sentences if start <= s.start and s.end <= end]
        for start, end in units
    ]
    assert [s for unit in held for s in unit] == list(sentences)
    assert all(sum(s.tokens for s in unit) >= least for unit in held) or len(units) == 1


def test_files_folders_and_bad_lines(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"text": "One.", "id": "x"}\n\n{"text": "Two.", "title": "T"}\n'
    )
    (tmp_path / "b.txt").write_text("Three.\n\x1e\nFour.\n")
    (tmp_path / "c.md").write_text("# Five\n")
    with gzip.open(tmp_path / "d.jsonl.gz", "wt") as file:
        file.write(json.dumps({"text": "Six.", "source": "six"}) + "\n")
    found = list(read_sources(source_files([tmp_path])))
    assert [each.text.strip() for each in found] == [
        "One.",
        "Two.",
        "Three.",
        "Four.",
        "# Five",
        "Six.",
    ]
    assert (found[0].doc_id, found[1].title, found[5].source) == ("x", "T", "six")
    (tmp_path / "e.jsonl").write_text('{"text": "One."}\n{"words": 3}\n')
    with pytest.raises(
        DataError, match=r"e\.jsonl, line 2: expected a JSON object with a document"
    ):
        list(read_sources([tmp_path / "e.jsonl"]))
    assert [(each.doc_id, each.source) for each in found[2:5:2]] == [
        ("b-1", "b"),
        ("c.md", "c.md"),
    ]
    (tmp_path / "f.txt").write_bytes(b"One.\n\xff")
    with pytest.raises(DataError, match=r"f\.txt, line 2: expected UTF-8"):
        list(read_sources([tmp_path / "f.txt"]))
    with pytest.raises(ValueError, match="no such file"):
        source_files([tmp_path / "absent"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="folder without text"):
        source_files([tmp_path / "empty"])


def test_documents_of_both_frameworks() -> None:
    documents = [
        LlamaIndexDocument(
            text="One.", id_="a", metadata={"title": "T", "secret": "s"}
        ),
        LangChainDocument("Two.", metadata={"source": "b.pdf"}),
    ]
    found = [
        (each.doc_id, each.text, each.title) for each in framework_documents(documents)
    ]
    assert found == [("a", "One.", "T"), ("b.pdf", "Two.", "")]
    with pytest.raises(TypeError, match="document 1 is int"):
        list(framework_documents([3]))


def test_settings_out_of_range() -> None:
    for name, value in (
        ("strategy", "guess"),
        ("sizes", ()),
        ("weights", (1.0,)),
        ("positions", (("start", "top"),)),
        ("test_share", 2),
        ("tries", 0),
        ("window_units", 10),
    ):
        with pytest.raises(ValueError, match=f"{name}: got"):
            SynthesisSettings(**{name: value})  # type: ignore[arg-type]


def test_sources_are_called_by_their_files(tmp_path: Path) -> None:
    lines, novels = tmp_path / "squad11" / "train.jsonl", tmp_path / "novels-000.txt"
    odd = tmp_path / os.fsdecode(b"caf\xe9.txt")
    lines.parent.mkdir()
    lines.write_text('{"text": "One."}\n')
    novels.write_text("Two.\n")
    odd.write_text("Three.\n")
    found = [each.source for each in read_sources([lines, novels, odd])]
    assert found == [
        "squad11/train",
        "novels-000",
        r"caf\udce9",
    ]  # results can hold this name
