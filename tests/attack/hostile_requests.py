"""Requests drawn from a seed: every route, with fields of every wrong kind."""

import base64
import json
import re
from collections.abc import Callable
from hashlib import sha256
from random import Random
from typing import NamedTuple

from spscanner_rag.apps.serving.bodies import Body
from spscanner_rag.apps.serving.schemas import (
    CohereRerank,
    DocumentBody,
    Page,
    Scan,
    Score,
    SeveralTexts,
    TeiRerank,
)

TEXTS = [
    "The keeper left. ",
    "a. ",
    "x",
    "é, ",
    "\n",
    "1.2 (3) ",
    "[]{}",
    "😀! ",
    "a\u0301\u200b",
    "- b\n",
    "| c | d |\n",
    "\x00",
]
ITEMS = r"""
1 {} [] "" "a.b" {"":{}} [[1]] null -1 1e99 "\ud800" NaN {"text":"a"} [0,1,null]
""".split()
FILES = [
    b"%PDF-1.7\n1 0 obj <<>> ",
    b"PK\x03\x04",
    b"<html><table>",
    b"# a\n\n> ",
    b"<p>" * 50,
    b"\xff\xfe",
    b"* b\n",
]

BODIES: dict[str, type[Body] | None] = {
    "/v1/scan": Scan,
    "/v1/rerank": CohereRerank,
    "/v2/rerank": CohereRerank,
    "/rerank": TeiRerank,
    "/v1/score": Score,
    "/v1/segment": SeveralTexts,
    "/v1/count_tokens": SeveralTexts,
    "/v1/prepare": DocumentBody,
    "/v1/page": Page,
    **dict.fromkeys(("/v1/collections/", "/v1/models", "/")),
}


class Hostile(NamedTuple):
    """A request."""

    method: str
    path: str
    body: bytes


def hostile_request(random: Random, largest: int) -> Hostile:
    """Draw a request whose body has at most about ``largest`` bytes."""
    path = random.choice(list(BODIES))
    size = int(largest ** random.uniform(0.1, 1.0))
    kind = BODIES[path]
    if path == "/v1/collections/":
        content = random.randbytes(min(size, 9_999)) + bytes(size)
        return Hostile("PUT", path + sha256(content).hexdigest(), content)
    if kind is None:
        return Hostile("GET", path, b"")
    if random.random() < 0.1:
        return Hostile("POST", path, _text(random, size).encode())
    names = [
        name for name in kind.model_fields if random.random() < 0.6 or name == "query"
    ]
    random.shuffle(names)
    large = random.choice(names or [""])
    fields = []
    for name in names:
        own = kind.model_fields[name].annotation
        fields.append(
            f'"{name}":{_value(random, name, own, size if name == large else 200)}'
        )
    if random.random() < 0.1:
        fields += [f'"{number}":{random.choice(ITEMS)}' for number in range(size // 12)]
    return Hostile(
        "POST", path, ("{" + ",".join(fields) + "}").encode("utf-8", "replace")
    )


def _value(random: Random, name: str, kind: object, size: int) -> str:
    """JSON for a field of a type: mostly what it expects, otherwise anything."""
    if random.random() < 0.2:
        return _anything(random, size)
    if kind is bool:
        return random.choice(["true", "false", "1"])
    usual = _number if re.search("int|float", str(kind)) else _text_json
    return _EXPECTED.get(name, usual)(random, size)


def _anything(random: Random, size: int) -> str:
    item = random.choice(ITEMS)
    many = size // (len(item) + 1)
    shape = random.randrange(4)
    if shape == 0:
        return item
    if shape == 1:
        return "[" * many
    if shape == 2:
        return (
            "{" + ",".join(f'"{number:x}":{item}' for number in range(many // 3)) + "}"
        )
    return "[" + ",".join([item] * many) + "]"


def _text(random: Random, size: int) -> str:
    piece = random.choice(TEXTS)
    return piece * max(1, size // len(piece.encode()))


def _text_json(random: Random, size: int) -> str:
    return json.dumps(_text(random, size), ensure_ascii=random.random() < 0.2)


def _texts(random: Random, size: int) -> str:
    count = random.choice([0, 1, 3, 300, 3_000])
    return json.dumps(
        [_text(random, size // max(1, count)) for _ in range(min(count, size))],
        ensure_ascii=False,
    )


def _objects(random: Random, size: int) -> str:
    pieces = [
        f'{{"text":{_text_json(random, 20)},'
        f'"t{number}":{_anything(random, size // 9)}}}'
        for number in range(9)
    ]
    return "[" + ",".join(pieces) + "]"


def _requests(random: Random, size: int) -> str:
    text = _text(random, size // 4)
    step = random.choice([1, 7, 300])
    model_text = random.choice([None, "b", "The keeper left. " * 5])
    units = [
        (start, start + step, model_text)
        for start in range(0, min(len(text), size // 12), step)
    ]
    return json.dumps(
        [{"query": "Who left?", "text": text, "units": units}], ensure_ascii=False
    )


def _file(random: Random, size: int) -> str:
    return json.dumps(
        base64.b64encode(random.choice(FILES) * max(1, size // 30)).decode()
    )


def _number(random: Random, _: int) -> str:
    return random.choice(["0", "1", "10", "0.5", "null", "-1", "9" * 30, "true"])


_EXPECTED: dict[str, Callable[[Random, int], str]] = {
    "query": lambda random, size: _text_json(random, min(size, 9_000)),
    "documents": lambda random, size: random.choice([_texts, _objects])(random, size),
    "texts": _texts,
    "instruction": lambda random, _: random.choice(['""', "null", '"x"']),
    "requests": _requests,
    "rank_fields": lambda random, size: json.dumps(
        [random.choice(["text", "t1", "t2"])] * min(2_000, size)
    ),
    "file": _file,
    "name": lambda random, _: json.dumps(
        random.choice(["a.pdf", "a.docx", "../a.md", "a.html", "\x1b[31m.txt"])
    ),
    "collection": lambda random, _: json.dumps("0" * random.choice([64, 3])),
    "order": lambda random, _: random.choice(['"score"', '"document"', '"x"']),
}
