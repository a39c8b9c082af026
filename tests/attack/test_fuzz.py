"""A search for inputs that break a promise: files, entries of the cache, model folders.

Each input that Hypothesis draws has a bound of time (the deadline) and one of memory
(the attempt). The draws are the same in every run; in all they take a minute or two.
"""

import json
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("lxml", reason="the extra files is not installed")

from spscanner_rag import Scanner
from spscanner_rag.apps.cache import ReadCache
from spscanner_rag.apps.cache.entries import EntryFolder
from spscanner_rag.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from spscanner_rag.checkpoint.encoder_file import EncoderFile
from spscanner_rag.encoder.meaning_weights import MeaningWeights
from spscanner_rag.encoder.sentence_vectors import SentenceVectors
from spscanner_rag.files import read
from spscanner_rag.files.reading import read_bytes
from spscanner_rag.text.block_segmentation import segment_blocks
from spscanner_rag.text.segmentation import SentenceSegmenter
from tests.attack.conftest import Attempt, assert_one_line
from tests.attack.hostile_files import SHAPES, hostile_file

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

IN_PROCESS = sorted(shape for shape in SHAPES if not shape.startswith("pdf"))
PAGE = "<h1>Treaty</h1><p>Anne signed it.</p><ul><li>One ship was lost.</li></ul>"
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
CHANGES = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),  # where
        st.integers(0, 60),  # how many bytes are cut out
        st.binary(max_size=12),  # what is put in
        st.sampled_from([1, 1, 1, 200]),  # how often
    ),
    min_size=1,
    max_size=4,
)


def bounded(examples: int) -> Any:
    """Some examples, each of which ends within 20 seconds."""
    return settings(
        max_examples=examples,
        deadline=timedelta(seconds=20),
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def changed(data: bytes, changes: list[tuple[float, int, bytes, int]]) -> bytes:
    """The data after changes, one after the other."""
    for share, length, inserted, times in changes:
        place = int(share * len(data))
        data = data[:place] + inserted * times + data[place + length :]
    return data


@bounded(250)
@given(shape=st.sampled_from(IN_PROCESS), changes=CHANGES)
def fuzz_a_file(
    attempt: Attempt, shape: str, changes: list[tuple[float, int, bytes, int]]
) -> None:
    name, data = hostile_file(shape, 12)
    with attempt("fuzz: files"):
        try:
            document = read_bytes(name, changed(data, changes))
        except ValueError as error:
            assert_one_line(str(error))
            return
        end = 0
        segment = SentenceSegmenter().segment
        for unit in segment_blocks(document.text, document.blocks, segment):
            assert end <= unit.start < unit.end <= len(document.text)
            end = unit.end
        for block in document.blocks:
            document.place(block.start, block.end)


def test_any_file_is_read_or_told_in_one_line(attempt: Attempt) -> None:
    fuzz_a_file(attempt)


@bounded(300)
@given(
    changes=CHANGES,
    is_of_text=st.booleans(),
    has_right_digest=st.booleans(),
)
def fuzz_an_entry(
    attempt: Attempt,
    folder: Path,
    changes: list[tuple[float, int, bytes, int]],
    is_of_text: bool,
    has_right_digest: bool,
) -> None:
    page = folder / "page.html"
    cache = ReadCache(folder / "cache")
    vectors = SentenceVectors.of(np.random.default_rng(0).normal(size=(5, 8)))
    cache.put("encoder", "key", vectors)
    cache.read(page)
    pattern = "text-*" if is_of_text else "vectors-*"
    (entry,) = cache.folder.glob(pattern)
    with attempt("fuzz: entries of the cache"):
        if has_right_digest:
            entries = EntryFolder(cache.folder)
            content = entries.get(entry.name)
            assert content is not None
            entries.put(entry.name, changed(content, changes))
        else:
            entry.write_bytes(changed(entry.read_bytes(), changes))
        again = cache.read(page)
        assert isinstance(again.text, str)
        again.place(0, len(again.text))
        found = cache.get("encoder", "key")
        if found is not None:
            width = found.rows.shape[1]
            assert np.isfinite(found.cosines(np.ones(width, np.float32))).all()
        if not has_right_digest:
            assert again == read(page)
            assert found is None or np.array_equal(found.rows, vectors.rows)
    entry.unlink(missing_ok=True)


def test_any_entry_is_used_as_it_was_or_made_again(
    attempt: Attempt, tmp_path: Path
) -> None:
    (tmp_path / "page.html").write_text(PAGE)
    fuzz_an_entry(attempt, tmp_path)


@pytest.fixture(scope="module")
def model_folder(
    tiny_checkpoint: Path,
    encoder_file: EncoderFile,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A checkpoint with an encoder, without digests, which would find every change."""
    own = load_checkpoint(tiny_checkpoint, device="cpu")
    folder = tmp_path_factory.mktemp("models") / "model"
    save_checkpoint(
        folder,
        own.model,
        replace(own.settings, meaning=MeaningWeights()),
        own.tokenizer,
        word_vectors=own.word_vectors,
        encoder=encoder_file,
    )
    config = json.loads((folder / "config.json").read_text())
    del config["spscanner"]["sha256"]
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def places_in(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value in JSON, but to few of a long list or object."""
    places = [place] if place else []
    if isinstance(value, dict):
        for key in list(value)[:12]:
            places += places_in(value[key], (*place, key))
    elif isinstance(value, list):
        for number in range(min(len(value), 3)):
            places += places_in(value[number], (*place, number))
    return places


def with_value(content: Any, place: tuple[Any, ...], value: Any) -> None:
    """Put a value into JSON."""
    for key in place[:-1]:
        content = content[key]
    content[place[-1]] = value


def changed_json(
    data: bytes, share: float, value: object, copies_from: float | None
) -> bytes:
    """JSON with one value replaced, by any other or by a part of itself."""
    content = json.loads(data)
    places = places_in(content)
    if copies_from is not None:
        value = content
        for key in places[int(copies_from * len(places))]:
            value = value[key]
        value = json.loads(json.dumps(value))
    with_value(content, places[int(share * len(places))], value)
    return json.dumps(content).encode()


SHARES = st.floats(0, 1, exclude_max=True)


@bounded(100)
@given(
    name=st.sampled_from(["config.json", "tokenizer.json", "tensors", "encoder"]),
    share=SHARES,
    value=ANYTHING,
    copies_from=st.none() | SHARES,
    changes=CHANGES,
)
def fuzz_a_model(
    attempt: Attempt,
    source: Path,
    folder: Path,
    name: str,
    share: float,
    value: object,
    copies_from: float | None,
    changes: list[tuple[float, int, bytes, int]],
) -> None:
    shutil.copytree(source, folder)
    file = folder / {
        "tensors": "model.safetensors",
        "encoder": "encoder.safetensors",
    }.get(name, name)
    data = file.read_bytes()
    if name.endswith(".json"):
        file.write_bytes(changed_json(data, share, value, copies_from))
    else:
        file.write_bytes(changed(data, changes))
    try:
        with attempt("fuzz: model folders"):
            try:
                scanner = Scanner.from_pretrained(folder, device="cpu", dtype="float32")
                result = scanner.scan("Who left?", "It rained. The keeper left.")
                assert np.isfinite(result.logits).all()
            except CheckpointError as error:
                assert_one_line(str(error), folder)
    finally:
        shutil.rmtree(folder)


def test_any_model_folder_is_read_or_refused(
    attempt: Attempt, model_folder: Path, tmp_path: Path
) -> None:
    fuzz_a_model(attempt, model_folder, tmp_path / "changed")
