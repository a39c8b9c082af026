"""Files of replies: what is found again, and the line that an error names."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from spscanner_lab.llm.replies import Usage
from spscanner_lab.llm.reply_file import ReplyFile, digest_of


def records(file: ReplyFile) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.path.read_text().splitlines()]


PROMPT = "Wer? \ud800 🚢\u2028\n"


def test_replies_are_found_again_and_failures_are_not(tmp_path: Path) -> None:
    replies = ReplyFile(tmp_path / "new" / "replies.jsonl")
    replies.add("m", PROMPT, reply="the keeper", attempts=2, seconds=0.25)
    replies.add("m", "other", error="TimeoutError: slow", attempts=3)
    assert records(replies) == [  # at once
        {"digest": digest_of("m", PROMPT), "model": "m", "prompt": PROMPT}
        | {"reply": "the keeper", "attempts": 2, "seconds": 0.25},
        {"digest": digest_of("m", "other"), "model": "m", "prompt": "other"}
        | {"error": "TimeoutError: slow", "attempts": 3, "seconds": 0.0},
    ]
    again = ReplyFile(replies.path)
    assert (len(replies), len(again)) == (1, 1)
    assert again.get(digest_of("m", PROMPT)) == "the keeper"
    assert (
        again.get(digest_of("n", PROMPT)) is again.get(digest_of("m", "other")) is None
    )
    again.add("m", "other", reply="late")
    assert ReplyFile(replies.path).get(digest_of("m", "other")) == "late"


@pytest.mark.parametrize("cut", [1, 9, 100])
def test_a_half_written_line_is_dropped(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "replies.jsonl"
    replies = ReplyFile(path)
    replies.add("m", "first", reply="one")
    replies.add("m", "second", reply="two")
    os.truncate(path, path.stat().st_size - cut)
    replies = ReplyFile(path)
    assert replies.get(digest_of("m", "first")) == "one"
    assert replies.get(digest_of("m", "second")) is None
    replies.add("m", "second", reply="two again")
    assert [record["reply"] for record in records(replies)] == ["one", "two again"]


@pytest.mark.parametrize(
    "line",
    [
        b"{broken\n",
        b"\xff\xfe\n",
        b"[]\n",
        b"[" * 100_000 + b"\n",
        b'{"model": "m", "prompt": "p"}\n',
        b'{"digest": "0", "model": "m", "prompt": "p", "reply": "r"}\n',
        json.dumps(
            {"digest": digest_of("m", "p"), "model": "m", "prompt": "p", "reply": 3}
        ).encode()
        + b"\n",
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "replies.jsonl"
    replies = ReplyFile(path)
    replies.add("m", "first", reply="one")
    before = path.read_bytes() + line + path.read_bytes()
    path.write_bytes(before)
    with pytest.raises(
        ValueError, match=r"replies\.jsonl, line 2: expected a prompt and its reply"
    ):
        ReplyFile(path)
    assert path.read_bytes() == before


def test_several_threads_write_and_find(tmp_path: Path) -> None:
    replies = ReplyFile(tmp_path / "replies.jsonl")
    with ThreadPoolExecutor(4) as pool:
        list(
            pool.map(
                lambda n: replies.add(
                    "m", str(n), reply=f"r{n}" * 500, usage=Usage(1, n)
                ),
                range(100),
            )
        )
        assert all(
            replies.get(digest_of("m", str(n))) == f"r{n}" * 500 for n in range(100)
        )
        assert (replies.attempts, replies.usage) == (100, Usage(100, 4950))
