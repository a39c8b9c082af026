"""Damage to a checkpoint's folder, accidental or deliberate.

Each kind draws from a seed.
"""

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

Damage = Callable[[Path, random.Random], None]

CONFIG, TOKENIZER = "config.json", "tokenizer.json"
TABLE = "word_vectors.safetensors"
OTHER = "other"
"""Beside every attacked folder lies an intact one with this name and other weights."""


def flip_bits(name: str, folder: Path, rng: random.Random) -> None:
    content = bytearray((folder / name).read_bytes())
    for _ in range(rng.choice((1, 1, 1, 8))):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    (folder / name).write_bytes(content)


def truncate(name: str, folder: Path, rng: random.Random) -> None:
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(
        content[: rng.choice((0, 1, 8, len(content) - 1, rng.randrange(len(content))))]
    )


def lengthen(name: str, folder: Path, rng: random.Random) -> None:
    with (folder / name).open("ab") as file:
        file.write(rng.randbytes(rng.choice((1, 4096))))


def overwrite(name: str, folder: Path, rng: random.Random) -> None:
    """Overwrite a block with zeros, as after a power failure, or with other bytes."""
    content = bytearray((folder / name).read_bytes())
    start = rng.randrange(len(content))
    size = min(rng.choice((16, 512, 4096)), len(content) - start)
    content[start : start + size] = rng.choice((bytes(size), rng.randbytes(size)))
    (folder / name).write_bytes(content)


def exchange(name: str, folder: Path, rng: random.Random) -> None:
    """A file of another checkpoint (copied or linked), or another file of this one."""
    others = sorted(path for path in folder.iterdir() if path.name != name)
    other = rng.choice([folder.parent / OTHER / name, rng.choice(others)])
    (folder / name).unlink()
    if rng.random() < 0.5:
        shutil.copy(other, folder / name)
    else:
        (folder / name).symlink_to(other)


def replace_by_special(name: str, folder: Path, rng: random.Random) -> None:
    path = folder / name
    path.unlink()
    kind = rng.randrange(7)
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.mkdir()
    elif kind == 2:
        with path.open("wb") as file:
            file.truncate(2**40)  # a sparse file
    elif kind < 6:
        path.symlink_to(("/dev/zero", name, "absent")[kind - 3])
    # otherwise the file is missing


def permute_tokenizer(folder: Path, rng: random.Random) -> None:
    tokenizer = json.loads((folder / TOKENIZER).read_bytes())
    vocabulary = tokenizer["model"]["vocab"]
    one, two = rng.sample(sorted(vocabulary), 2)
    vocabulary[one], vocabulary[two] = vocabulary[two], vocabulary[one]
    (folder / TOKENIZER).write_text(json.dumps(tokenizer))


def edit_tokenizer(folder: Path, rng: random.Random) -> None:
    """Part of the tokenizer makes texts longer, fails on some, or is invalid."""
    bomb = {"type": "Replace", "pattern": {"Regex": "."}, "content": "x" * 10_000}
    slow = {"type": "Split", "pattern": {"Regex": "(x+x+)+y"}}
    parts: list[tuple[str, object]] = [
        ("normalizer", bomb),
        (
            "normalizer",
            {"type": "Sequence", "normalizers": [bomb | {"content": "xx" * 8}] * 8},
        ),
        ("normalizer", {"type": "Replace", "pattern": {"Regex": "("}, "content": ""}),
        ("pre_tokenizer", slow | {"behavior": "Isolated", "invert": False}),
        ("post_processor", {"type": "none"}),
        (
            "truncation",
            {
                "direction": "Right",
                "max_length": 1,
                "strategy": "LongestFirst",
                "stride": 5,
            },
        ),
        ("model", {"type": "WordLevel", "vocab": {"a": 2**32 - 1}, "unk_token": "b"}),
        ("model", {"type": "BPE", "vocab": {}, "merges": [["a", "b"]]}),
        ("added_tokens", [{"id": 10**6, "content": "x", "special": True}]),
        ("version", "9.9"),
    ]
    key, value = rng.choice(parts)
    tokenizer = json.loads((folder / TOKENIZER).read_bytes())
    tokenizer[key] = value
    (folder / TOKENIZER).write_text(json.dumps(tokenizer))


HOSTILE_VALUES: list[object] = [
    *(
        None,
        True,
        False,
        -1,
        0,
        1,
        2,
        7,
        2**31,
        2**63,
        10**400,
        0.5,
        -0.5,
        1e308,
        -1e-320,
    ),
    *(
        float("nan"),
        float("inf"),
        -float("inf"),
        "",
        "x",
        "64",
        "a\nb\x1b[31m\u202e",
        "\ud800",
        "9" * 10**5,
    ),
    *(
        [],
        {},
        [0] * 10**4,
        {"": {}},
        {"__float__": "Infinity"},
        [[[[1]]]],
        "sentence",
        "reference",
    ),
]


def _places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to all values within a JSON value."""
    pairs = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in pairs:
        yield (*above, key)
        yield from _places(inner, (*above, key))


def edit_config(folder: Path, rng: random.Random) -> None:
    """A value of ``config.json`` is replaced, missing, under another key, or added."""
    config = json.loads((folder / CONFIG).read_bytes())
    *way, key = rng.choice(list(_places(config)))
    holder = config
    for step in way:
        holder = holder[step]
    kind = rng.randrange(6)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[rng.choice(("x", f"{key}\n\x1b", "", "\ud800"))] = holder.pop(key)
    elif kind == 2 and isinstance(holder, dict):
        holder["auto_map"] = {"AutoModel": "code.Model"}
    else:
        holder[key] = rng.choice(
            [value for value in HOSTILE_VALUES if value != holder[key]]
        )
    (folder / CONFIG).write_text(json.dumps(config))


def odd_json(name: str, folder: Path, rng: random.Random) -> None:
    """Input that a JSON parser may fail on."""
    content = (folder / name).read_text(encoding="utf-8")
    depth = rng.choice((500, 5_000, 10**6))
    odd = (
        "[" * depth,
        content.replace("{", '{"a": ' + "[" * depth + "]" * depth + ",", 1),
        content.replace("{", '{"a": ' + "9" * 5_000 + ",", 1),
        content.replace("{", '{"a": 1, "a": 2,', 1),
        content.replace('"', "'"),
        content.replace("\n", "\x00"),
        f"{content}{content}",
        "null",
        "[]",
        '"\ud800"',
    )
    (folder / name).write_bytes(rng.choice(odd).encode("utf-8", "surrogatepass"))


def exchange_digests(folder: Path, rng: random.Random) -> None:
    """The digest of another file, or a value that is not a digest."""
    config = json.loads((folder / CONFIG).read_bytes())
    digests = config["spscanner"]["sha256"]
    name = rng.choice(sorted(digests))
    others = json.loads((folder.parent / OTHER / CONFIG).read_bytes())["spscanner"][
        "sha256"
    ]
    kind = rng.randrange(4)
    if kind == 0:
        digests[name] = rng.choice(
            [value for other, value in digests.items() if other != name]
        )
    elif kind == 1:
        digests[name] = others[name]
    elif kind == 2:
        digests[rng.choice(("../x", "README.md", "\n"))] = digests.pop(name)
    else:
        digests[name] = rng.choice(HOSTILE_VALUES)
    (folder / CONFIG).write_text(json.dumps(config))


def byte_damages(*names: str) -> dict[str, Damage]:
    kinds = (flip_bits, truncate, lengthen, overwrite, exchange, replace_by_special)
    return {
        f"{name_of(kind)}: {name}": partial(kind, name)
        for kind in kinds
        for name in names
    }


def json_damages() -> dict[str, Damage]:
    kinds = (permute_tokenizer, edit_tokenizer, edit_config)
    odd = {f"odd json: {name}": partial(odd_json, name) for name in (CONFIG, TOKENIZER)}
    return {name_of(kind): kind for kind in kinds} | odd


def name_of(kind: Callable[..., None]) -> str:
    return kind.__name__.replace("_", " ")
