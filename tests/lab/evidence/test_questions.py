"""Question files: what is read, and the line that each error names."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from spscanner_lab.evidence.data_lines import DataError
from spscanner_lab.evidence.questions import Document, Question, read_documents

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
        (
            {"answerable": False},
            Question("q1", "Signed?", ((11, 33),), False, answers=("yes",)),
        ),
        (
            {"answerable": True, "evidence_ambiguous": True},
            Question("q1", "Signed?", ((11, 33),), True, True, answers=("yes",)),
        ),
        (
            {"answers": ["yes"], "choices": ["no", "yes"]},
            Question(
                "q1", "Signed?", ((11, 33),), answers=("yes",), choices=("no", "yes")
            ),
        ),
    ],
)
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
