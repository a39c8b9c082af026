"""Question-answering files: what is read from them, and the line that each error names."""

import csv
import gzip
import hashlib
import json
import lzma
import random
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_lab.evidence import questions
from spscanner_lab.evidence.questions import (
    DataError,
    Document,
    Question,
    is_chunking,
    is_held_out,
    numbered_lines,
    read_chunking,
    read_documents,
    sample_questions,
)

RECORD: dict[str, Any] = {
    "doc_id": "d1",
    "source": "made",
    "license": "none",
    "split": "dev",
    "title": "A title",
    "text": "It rained. The treaty was signed.",
    "questions": [
        {"qid": "q1", "question": "Signed?", "answers": ["yes"], "evidence": [[11, 33]]}
    ],
}


def write(path: Path, *records: object) -> Path:
    lines = "".join(
        record if isinstance(record, str) else json.dumps(record) + "\n"
        for record in records
    )
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(lines.encode(), mtime=0))
    else:
        path.write_text(lines, encoding="utf-8")
    return path


def with_question(**keys: Any) -> dict[str, Any]:
    return RECORD | {"questions": [RECORD["questions"][0] | keys]}


def without(record: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != key}


def read(path: Path) -> list[Document]:
    return list(read_documents([path]))


@pytest.mark.parametrize("name", ["data.jsonl", "data.jsonl.gz"])
def test_documents(tmp_path: Path, name: str) -> None:
    path = write(
        tmp_path / name,
        RECORD,
        "\n",
        "  \r\n",
        RECORD | {"doc_id": "d2", "questions": []},
    )
    first, second = read(path)
    assert first == Document(
        doc_id="d1",
        source="made",
        title="A title",
        text="It rained. The treaty was signed.",
        questions=(Question("q1", "Signed?", ((11, 33),), answers=("yes",)),),
        split="dev",
    )
    assert (second.doc_id, second.questions) == ("d2", ())


def test_files_in_order_one_document_at_a_time(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / f"{name}.jsonl", RECORD | {"doc_id": name}) for name in "bca"
    ]
    assert [document.doc_id for document in read_documents(paths)] == ["b", "c", "a"]
    assert read(write(tmp_path / "empty.jsonl")) == []
    documents = read_documents(
        [write(tmp_path / "d.jsonl", json.dumps(RECORD) + "\n", "{broken")]
    )
    assert next(documents).doc_id == "d1"
    with pytest.raises(
        DataError, match=r"d\.jsonl, line 2: "
    ):  # even without a line break at the end
        next(documents)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, Question("q1", "Signed?", ((11, 33),), answers=("yes",))),
        ({"answerable": False}, Question("q1", "Signed?", ((11, 33),), False, answers=("yes",))),
        ({"answerable": True, "evidence_ambiguous": True},
         Question("q1", "Signed?", ((11, 33),), True, True, answers=("yes",))),
        ({"answers": ["yes"], "choices": ["no", "yes"]},
         Question("q1", "Signed?", ((11, 33),), answers=("yes",), choices=("no", "yes"))),
    ],
)  # fmt: skip
def test_optional_keys(
    tmp_path: Path, keys: dict[str, Any], expected: Question
) -> None:
    (document,) = read(
        write(
            tmp_path / "data.jsonl",
            with_question(**keys) | {"title": None, "source": None},
        )
    )
    assert (document.source, document.title, document.questions) == (
        "",
        "",
        (expected,),
    )
    record = {
        "doc_id": "d",
        "text": "t",
        "questions": [{"qid": "q", "question": "why"}],
    }
    (document,) = read(write(tmp_path / "less.jsonl", record))
    assert document == Document("d", "", "", "t", (Question("q", "why", ()),))


def test_evidence_counts_characters_not_bytes(tmp_path: Path) -> None:
    text = "Ωμέγα 🚢\u2028 \ud800."
    record = with_question(evidence=[[0, len(text)]]) | {"text": text}
    (document,) = read(write(tmp_path / "data.jsonl", record))
    assert (document.text, document.questions[0].evidence) == (text, ((0, len(text)),))


BAD_LINES = [
    (
        '{"doc_id": "d1", "doc_id": "d2"}',
        "expected one JSON object, got the key 'doc_id' twice",
    ),
    (
        json.dumps(RECORD | {"source": "\ud800"}),
        r"expected text that UTF-8 can hold under 'source', got '\\ud800'",
    ),
    (json.dumps(RECORD | {"split": "\ud800"}), "that UTF-8 can hold under 'split'"),
    ("{broken", "expected one JSON object"),
    ('{"doc_id": "d1"} {"doc_id": "d2"}', "expected one JSON object"),
    ("[1, 2]", "expected one JSON object, got a JSON list"),
    ("null", "expected one JSON object, got a JSON NoneType"),
    ("1" * 5000, "expected one JSON object"),
    ("[" * 100_000, "expected one JSON object"),
    (
        json.dumps(without(RECORD, "doc_id")),
        "expected a string under 'doc_id', got None",
    ),
    (json.dumps(RECORD | {"text": 5}), "expected a string under 'text', got 5"),
    (
        json.dumps(without(RECORD, "questions")),
        "expected 'questions' to be a list of objects, got None",
    ),
    (
        json.dumps(RECORD | {"questions": ["why"]}),
        "expected 'questions' to be a list of objects",
    ),
    (json.dumps(with_question(qid=1)), "expected a string under 'qid', got 1"),
    (
        json.dumps(with_question(answers=["a", 1])),
        "question q1: expected 'answers' to be a list of strings",
    ),
    (
        json.dumps(with_question(choices="ab")),
        "question q1: expected 'choices' to be a list of strings",
    ),
    (
        json.dumps(with_question(choices=["no"])),
        "question q1: expected each answer among the choices",
    ),
    (
        json.dumps(with_question(answers=[], choices=["x"] * 27)),
        "expected at most 26 choices, got 27",
    ),
    (
        json.dumps(with_question(evidence=None)),
        "question q1: expected 'evidence' to be a list",
    ),
    *(
        (
            json.dumps(with_question(evidence=[[0, 2], span])),
            r"question q1: expected \[start, end\] with .*the length of the text, got ",
        )
        for span in (
            *([5, 5], [6, 5], [-1, 5], [0, 34], [0], [0, 1, 2]),
            *([0.0, 5], [False, True], ["0", "5"], 5, None),
        )
    ),
]


@pytest.mark.parametrize(("line", "message"), BAD_LINES)
def test_errors_name_file_and_line(tmp_path: Path, line: str, message: str) -> None:
    path = write(tmp_path / "data.jsonl", RECORD, "\n", line + "\n", RECORD)
    with pytest.raises(DataError, match=message) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}, line 3")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400 + len(str(path))


LINES = "".join(
    json.dumps(RECORD | {"doc_id": str(n)}) + "\n" for n in range(2000)
).encode()
PACKED = gzip.compress(LINES, mtime=0)
MIDDLE = len(PACKED) // 2


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "data.jsonl",
            LINES[: LINES.index(b"\n") + 1] + b'{"text": "\xff"}\n',
            "line 2: .* 'utf-8' codec",
        ),
        (
            "data.jsonl.gz",
            gzip.compress(b'{"text": "\xff"}\n', mtime=0),
            "line 1: .* 'utf-8' codec",
        ),
        ("data.jsonl.gz", LINES, r"line 1: .*gzip"),
        ("data.jsonl.gz", PACKED[:MIDDLE], r"line \d+: "),
        (
            "data.jsonl.gz",
            PACKED[:MIDDLE] + b"\x00" * 40 + PACKED[MIDDLE + 40 :],
            r"line \d+: ",
        ),
    ],
)
def test_damaged_files(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}, ")


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
@pytest.mark.parametrize("line", [b" " * 20_000_000, b" " * 999 + b"\n"])
def test_decompression_bombs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Any, line: bytes
) -> None:
    monkeypatch.setattr(questions, "LEAST_LIMIT", 3_000_000)
    path = tmp_path / f"data.jsonl.{'gz' if pack is gzip.compress else 'xz'}"
    path.write_bytes(pack(line * (20_000_000 // len(line))))
    tracemalloc.start()
    with pytest.raises(
        DataError, match=r"expands to more than .*decompress it and give the result"
    ) as caught:
        for _ in numbered_lines(path):
            pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert str(caught.value).startswith(
        f"{path}: got a compressed file of {path.stat().st_size:,} bytes"
    )
    assert peak < 20_000_000
    errors: list[DataError] = []
    assert list(read_documents([path], errors.append)) == []
    assert len(errors) == 1


@pytest.mark.parametrize("name", ["macro", "micro"])
def test_a_source_has_no_name_of_a_mean_where_results_are_kept(
    tmp_path: Path, name: str
) -> None:
    path = write(
        tmp_path / "data.jsonl", RECORD, RECORD | {"doc_id": "d2", "source": name}
    )
    with pytest.raises(
        DataError,
        match=f"line 2: got the source '{name}', the name of a mean over sources",
    ):
        list(read_documents([path], distinct=True))
    errors: list[DataError] = []
    assert len(list(read_documents([path], errors.append, distinct=True))) == 1
    assert len(read(path)) == 2


def test_bad_lines_left_out_and_counted(tmp_path: Path) -> None:
    lines = [
        RECORD,
        "{broken\n",
        "\n",
        with_question(evidence=[[0, 34]]),
        RECORD | {"doc_id": "d2"},
    ]
    first, second = (
        write(tmp_path / "a.jsonl", *lines),
        write(tmp_path / "b.jsonl", "[]\n", RECORD),
    )
    bad: list[DataError] = []
    documents = list(read_documents([first, second], bad.append))
    assert [document.doc_id for document in documents] == ["d1", "d2", "d1"]
    assert [str(error).split(":")[0].split(", question")[0] for error in bad] == [
        f"{first}, line 2",
        f"{first}, line 4",
        f"{second}, line 1",
    ]


def test_damage_ends_its_file_only(tmp_path: Path) -> None:
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(PACKED[:MIDDLE])
    bad: list[DataError] = []
    documents = list(
        read_documents([cut, write(tmp_path / "good.jsonl", RECORD)], bad.append)
    )
    names = [document.doc_id for document in documents]
    assert names[:-1] == [str(n) for n in range(len(names) - 1)]
    assert 100 < len(names) < 2000
    assert names[-1] == "d1"
    assert [str(error).startswith(f"{cut}, line {len(names)}") for error in bad] == [
        True
    ]


def test_a_missing_file_is_never_left_out(tmp_path: Path) -> None:
    bad: list[DataError] = []
    with pytest.raises(FileNotFoundError, match=r"nowhere\.jsonl"):
        list(read_documents([tmp_path / "nowhere.jsonl"], bad.append))
    assert bad == []


def test_a_question_twice(tmp_path: Path) -> None:
    others = (
        with_question(qid="q2"),
        RECORD | {"source": "other"},
        RECORD | {"doc_id": "d2"},
    )
    first = write(tmp_path / "a.jsonl", RECORD, *others)
    second = write(tmp_path / "b.jsonl", "\n", RECORD)
    assert len(list(read_documents([first], distinct=True))) == 4
    assert len(list(read_documents([first, second]))) == 5
    message = (
        "got question 'q1' of document 'd1' of source 'made' again, first in {}, line"
        " 1; expected each once"
    )
    with pytest.raises(DataError) as caught:
        list(read_documents([first, second], distinct=True))
    assert str(caught.value).startswith(f"{second}, line 2: {message.format(first)}")
    bad: list[DataError] = []
    assert (
        len(list(read_documents([first, second, second], bad.append, distinct=True)))
        == 4
    )
    assert len(bad) == 2
    twice = write(tmp_path / "c.jsonl", RECORD | {"questions": RECORD["questions"] * 2})
    with pytest.raises(DataError) as caught:
        list(read_documents([twice], distinct=True))
    assert str(caught.value).startswith(f"{twice}, line 1: {message.format(twice)}")


# Samples


def document(number: int, source: str = "made", questions: int = 4) -> Document:
    asked = tuple(
        Question(f"q{n}", f"Question {n}?", ((0, 1),)) for n in range(questions)
    )
    return Document(f"{source}-{number}", source, "", "A text.", asked)


DOCUMENTS = [document(number, source) for source in ("b", "a") for number in range(5)]


def ids(sample: list[tuple[Document, Question]]) -> list[tuple[str, str]]:
    return [(document.doc_id, question.qid) for document, question in sample]


def test_so_many_of_each_source() -> None:
    sample = sample_questions([*DOCUMENTS, document(0, "c", questions=2)], 7)
    assert {source: len(pairs) for source, pairs in sample.items()} == {
        "a": 7,
        "b": 7,
        "c": 2,
    }
    assert list(sample) == ["a", "b", "c"]
    assert len(sample_questions(DOCUMENTS)["a"]) == 20


@settings(max_examples=20)
@given(st.integers(1, 25), st.integers(0, 5), st.randoms(use_true_random=False))
def test_stable(per_source: int, seed: int, shuffle: random.Random) -> None:
    sample = sample_questions(DOCUMENTS, per_source, seed)
    shuffled = DOCUMENTS.copy()
    shuffle.shuffle(shuffled)
    assert sample_questions(shuffled, per_source, seed) == sample
    larger = sample_questions(DOCUMENTS, per_source + 1, seed)
    assert all(larger[source][:per_source] == sample[source] for source in sample)
    assert (
        sample_questions([d for d in DOCUMENTS if d.source == "a"], per_source, seed)[
            "a"
        ]
        == sample["a"]
    )


def test_two_questions_of_one_id() -> None:
    first, second = Question("q", "One?", ((0, 1),)), Question("q", "Two?", ((0, 1),))
    for both in ((first, second), (second, first)):
        sample = sample_questions([Document("d", "made", "", "A text.", both)])
        assert [question for _, question in sample["made"]] == [first, second]


@pytest.mark.parametrize(("answerable", "kinds"), [(True, "ap"), (False, "nu")])
def test_answerable_questions_with_evidence_and_unanswerable_ones(
    answerable: bool, kinds: str
) -> None:
    def asked(number: int) -> tuple[Question, ...]:
        return (
            Question(f"n{number}", "?", (), answerable=False),
            Question(f"u{number}", "?", ((0, 1),), answerable=False),
            Question(f"a{number}", "?", ((0, 1),), ambiguous=True),
            Question(f"p{number}", "?", ((0, 1),)),
            Question(f"e{number}", "?", ()),
        )

    documents = [Document(f"d{n}", "made", "", "A text.", asked(n)) for n in range(5)]
    found = ids(sample_questions(documents, seed=2, answerable=answerable)["made"])
    assert {qid for _, qid in found} == {
        f"{kind}{n}" for kind in kinds for n in range(5)
    }
    keys = [
        hashlib.sha256(f"2\n{doc_id}\n{qid}".encode()).hexdigest()
        for doc_id, qid in found
    ]
    assert keys == sorted(keys)
    assert (
        ids(sample_questions(documents, 3, 2, answerable=answerable)["made"])
        == found[:3]
    )
    assert (
        sample_questions(
            [Document("d", "made", "", "A text.", asked(0)[-1:])], answerable=answerable
        )
        == {}
    )


def test_odd_ids() -> None:
    odd = Document(
        "\ud800", "made", "", "A text.", (Question("\udfff", "?", ((0, 1),)),)
    )
    assert len(sample_questions([odd], 1)["made"]) == 1
    assert is_held_out("\ud800") in (True, False)


def test_held_out_is_the_dev_rule_of_the_data() -> None:
    names = [f"name-{n}" for n in range(2000)]
    expected = [
        int(hashlib.sha1(name.encode()).hexdigest(), 16) % 10 == 0 for name in names
    ]
    assert [is_held_out(name) for name in names] == expected
    assert 150 < sum(expected) < 250


# The folder of Chroma's chunking evaluation

TEXTS = {
    "harbours": "The quay is old.\r\nIt was widened in 1911, and the crane came later.",
    "wells": "Dry — a well.",
}


def written(folder: Path, *rows: dict[str, Any]) -> Path:
    (folder / "corpora").mkdir(parents=True)
    for name, text in TEXTS.items():
        (folder / "corpora" / f"{name}.md").write_bytes(text.encode())
    with (folder / "questions_df.csv").open("w", encoding="utf-8", newline="") as file:
        lines = csv.DictWriter(file, ["question", "references", "corpus_id"])
        lines.writeheader()
        lines.writerows(rows)
    return folder


def row(
    content: str, start: int, name: str = "harbours", question: str = "When?"
) -> dict[str, Any]:
    references = [
        {"content": content, "start_index": start, "end_index": start + len(content)}
    ]
    return {
        "question": question,
        "references": json.dumps(references),
        "corpus_id": name,
    }


def test_questions_and_their_exact_spans(tmp_path: Path) -> None:
    folder = written(
        tmp_path / "chroma",
        row("widened in 1911", 24),
        row("a well", 6, "wells", 'What, "exactly"?'),
    )
    assert is_chunking(folder)
    assert not is_chunking(tmp_path)
    harbours, wells = read_chunking(folder)
    assert (harbours.doc_id, harbours.source) == ("harbours", "chroma")
    assert [harbours.text[slice(*span)] for span in harbours.questions[0].evidence] == [
        "widened in 1911"
    ]
    assert (wells.questions[0].text, wells.questions[0].evidence) == (
        'What, "exactly"?',
        ((6, 12),),
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            row("widened", 25),
            "row 1: expected 'widened' at characters 25 to 32 .*got 'idened ",
        ),
        (row("widened", -3), "characters -3 to 4"),
        (row("widened", 10**7), "expected 'widened'"),
        (
            row("widened", 24, "piers"),
            "a question, and a corpus_id of harbours, wells, got 'piers'",
        ),
        (row("widened", 24, "../corpora/wells"), "got '../corpora/wells'"),
        (row("widened", 24, question=" "), "expected a question"),
        (
            row("widened", 24) | {"references": "[{'content': 1}]"},
            "a JSON list of content, start_index",
        ),
        (row("widened", 24) | {"references": "[1]"}, "a JSON list of content"),
        (row("widened", 24) | {"references": "[]"}, "expected at least one reference"),
    ],
)
def test_rows_that_are_wrong(
    wrong: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message):
        read_chunking(written(tmp_path / "chroma", wrong))
