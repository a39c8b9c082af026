"""The scanner: results against the original's, arguments, progress, threads."""

import itertools
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from spscanner_rag.checkpoint import load_checkpoint
from spscanner_rag.files import read
from spscanner_rag.lexical.lexical_scores import MatchOptions
from spscanner_rag.lexical.match import match_query
from spscanner_rag.lexical.words import index_words
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.results import ScanResult
from spscanner_rag.scan.segment_tokens import default_segment_tokens
from spscanner_rag.scanner import CHECKPOINT_DEFAULT, ScanCancelled, Scanner
from spscanner_rag.text.reference_segmentation import ReferenceSegmenter
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.tokenization import encode_question, tokenize_units

QUERY = "Who signed the treaty?"
TEXT = (
    "The keeper wrote the date in his book. He signed the treaty on 14 May 1911, "
    "and the captain left.\n"
    '"Who signed it?" she asked; nobody answered. Dr. Smith\'s report was 400 '
    "pages long!\n"
    "\n"
    "Why did they leave the island? Because the well was dry, and because the "
    "winter had been long.\n"
)
TOLERANCE = 1e-4


def load(folder: Path, **options: Any) -> Scanner:
    return Scanner.from_pretrained(
        folder, device="cpu", dtype="float32", local_files_only=True, **options
    )


@torch.inference_mode()
def one_by_one(
    model: ScannerModel, ids: list[int], classes: list[int] | None
) -> NDArray[np.float32]:
    """Hidden states of a sequence, read one token at a time: (tokens, d_model)."""
    state, hidden = None, []
    for position, token in enumerate(ids):
        match = None if classes is None else torch.tensor([[classes[position]]])
        out, state = model(torch.tensor([[token]]), state, match)
        hidden.append(out[0, 0].numpy())
    return np.stack(hidden)


def score(
    model: ScannerModel, hidden: NDArray[np.float32], prior: list[float] | None = None
) -> float:
    with torch.inference_mode():
        given = None if prior is None else torch.tensor([prior])
        return float(model.score(torch.from_numpy(hidden)[None], given))


# Against the original


def test_end_to_end(oracles: Path) -> None:
    expected = json.loads((oracles / "end_to_end.json").read_text())
    text = json.loads((oracles / "segmentation" / expected["document"]).read_text())[
        "text"
    ]
    scanner = load(
        oracles / "checkpoints" / "tiny-neox-vocab",
        tokenizer=oracles / "tokenizer" / "gpt-neox-20b.json",
    )
    assert scanner.checkpoint.published
    assert scanner.window_tokens == 120_000
    tokenizer = scanner.checkpoint.tokenizer
    question_ids = encode_question(tokenizer, expected["question"])[0]
    assert question_ids.tolist() == expected["question_input_ids"]
    units = ReferenceSegmenter(scanner.count_tokens, local_files_only=True).segment(
        text
    )
    document = tokenize_units(tokenizer, units, "contained")
    assert len(question_ids) + len(document.input_ids) == expected["n_tokens"]
    assert (document.unit_ends + len(question_ids)).tolist() == expected[
        "sentence_end_indices"
    ]

    result = scanner.scan(expected["question"], text)
    assert np.abs(result.logits - np.array(expected["logits"])).max() <= TOLERANCE
    in_segments = load(
        oracles / "checkpoints" / "tiny-neox-vocab",
        tokenizer=oracles / "tokenizer" / "gpt-neox-20b.json",
        segment_tokens=999,
    ).scan(expected["question"], text)
    assert np.abs(in_segments.logits - np.array(expected["logits"])).max() <= TOLERANCE
    assert "".join("".join(s.text for s in result.sentences).split()) == "".join(
        text.split()
    )


# Against a slow computation


def test_equals_reading_token_by_token(tiny_scanner: Scanner) -> None:
    checkpoint = tiny_scanner.checkpoint
    tokenizer, text = checkpoint.tokenizer, TEXT * 2
    result = tiny_scanner.scan(QUERY, text)

    # the stream by hand: question, sentences, the question again after the sentence
    # that fills 64 tokens
    units = SentenceSegmenter().segment(text)
    assert [(s.start, s.end) for s in result.sentences] == [
        (unit.start, unit.end) for unit in units
    ]
    question = tokenizer.encode(QUERY + "\n").ids
    every = max(64, 4 * len(question))
    encoding = tokenizer.encode(text)
    joined = index_words([unit.model_text for unit in units])
    spans = np.array(encoding.offsets)
    least = checkpoint.settings.least_units
    assert least > len(units)  # so that it matters here
    match = match_query(
        joined, QUERY, spans[:, 0], spans[:, 1], MatchOptions(True, least)
    )
    ids, classes, ends, since = list(question), [6] * len(question), [], 0
    remaining = [unit.end - 1 for unit in units]
    for token, (start, end), token_class in zip(
        encoding.ids, encoding.offsets, match.token_classes[:], strict=True
    ):
        ids.append(token)
        classes.append(int(token_class))
        since += 1
        if remaining and start <= remaining[0] < end:
            del remaining[0]
            ends.append(len(ids) - 1)
            if since >= every and remaining:
                ids += question
                classes += [6] * len(question)
                since = 0
    assert not remaining
    assert len(ids) > len(question) + len(encoding.ids)  # the question was repeated

    hidden = one_by_one(checkpoint.model, ids, classes)
    expected = [
        score(checkpoint.model, hidden[end], [float(prior), *around.tolist()])
        for end, prior, around in zip(
            ends, match.scores[:, 0], match.scores[:, 1:], strict=True
        )
    ]
    np.testing.assert_allclose(result.logits, expected, atol=TOLERANCE, rtol=0)
    assert result.logits.std() > 100 * TOLERANCE  # otherwise the comparison says little


def test_window_tokens_are_the_checkpoints(
    windowed_checkpoint: Path, tiny_checkpoint: Path
) -> None:
    assert load(windowed_checkpoint).window_tokens == 100
    assert load(windowed_checkpoint, window_tokens=None).window_tokens is None
    assert (
        load(windowed_checkpoint, window_tokens=CHECKPOINT_DEFAULT).window_tokens == 100
    )
    assert load(tiny_checkpoint).window_tokens is None
    assert load(tiny_checkpoint, window_tokens=200).window_tokens == 200
    assert repr(CHECKPOINT_DEFAULT) == "CHECKPOINT_DEFAULT"


# Results


@pytest.mark.parametrize(
    "text", ["", " ", "\n\r\n\t", "\u00a0\u2003\u3000", "\x1c\x85"]
)
def test_blank_texts_give_empty_results(
    tiny_scanner: Scanner, windowed_checkpoint: Path, text: str
) -> None:
    for scanner in (tiny_scanner, load(windowed_checkpoint)):
        result = scanner.scan(QUERY, text)
        assert result.sentences == ()
        assert result.logits.shape == (0,)
        assert result.select() == ()
        assert result.context() == ""
        assert result.text == text


@pytest.mark.parametrize(("backend", "rows"), [("torch", 8), ("numba", 1)])
def test_short_texts_share_a_pass(
    tiny_checkpoint: Path, backend: str, rows: int
) -> None:
    scanner = load(tiny_checkpoint, backend=backend)
    shapes: list[tuple[int, ...]] = []

    def watch(layer: object, args: tuple[torch.Tensor, ...]) -> None:
        shapes.append(tuple(args[0].shape))

    handle = scanner.checkpoint.model.backbone.embedding.register_forward_pre_hook(
        watch
    )
    try:
        scanner.scan_many(
            [(f"question {n}?", "It was the sentence of the day.") for n in range(8)]
        )
    finally:
        handle.remove()
    assert len(shapes) == 1
    assert shapes[0][0] == rows  # numba's kernels read one row, without padding


def test_lone_surrogates_are_replaced(
    tiny_scanner: Scanner, windowed_checkpoint: Path
) -> None:
    for scanner in (tiny_scanner, load(windowed_checkpoint)):
        broken = "One \ud800 two. \udfffThree\udc00 four."
        whole = broken.translate(dict.fromkeys((55296, 57343, 56320), "�"))
        got, expected = (
            scanner.scan("two \ud800?", broken),
            scanner.scan("two \ufffd?", whole),
        )
        np.testing.assert_allclose(got.logits, expected.logits, atol=1e-6, rtol=0)
        assert [(s.start, s.end) for s in got.sentences] == [
            (s.start, s.end) for s in expected.sentences
        ]
        assert got.sentences[-1].text == broken[got.sentences[-1].start :]
        assert got.text == broken
        assert len(got.select(max_tokens=1000)) == len(got.sentences)


def test_bfloat16(tiny_checkpoint: Path, tiny_scanner: Scanner) -> None:
    scanner = Scanner.from_pretrained(tiny_checkpoint, device="cpu", dtype="bfloat16")
    assert scanner.dtype == torch.bfloat16
    result = scanner.scan(QUERY, TEXT)
    assert result.logits.dtype == np.float32
    np.testing.assert_allclose(
        result.logits, tiny_scanner.scan(QUERY, TEXT).logits, atol=0.2, rtol=0
    )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda(tiny_checkpoint: Path, tiny_scanner: Scanner) -> None:
    on_gpu = Scanner.from_pretrained(
        tiny_checkpoint, device="cuda", dtype="float32"
    ).scan(QUERY, TEXT * 4)
    expected = tiny_scanner.scan(QUERY, TEXT * 4)
    np.testing.assert_allclose(on_gpu.logits, expected.logits, atol=TOLERANCE, rtol=0)


# Segmenters


def test_segmenter_by_name(tiny_checkpoint: Path, windowed_checkpoint: Path) -> None:
    def spans(result: ScanResult) -> list[tuple[int, int]]:
        return [(s.start, s.end) for s in result.sentences]

    for folder, own, other in (
        (tiny_checkpoint, "sentence", "reference"),
        (windowed_checkpoint, "reference", "sentence"),
    ):
        default = load(folder)
        assert default.reading.segmenter.name == own
        assert load(folder, segmenter=own).reading.segmenter.name == own
        overridden = load(folder, segmenter=other)
        assert overridden.reading.segmenter.name == other
        assert spans(overridden.scan(QUERY, TEXT)) != spans(default.scan(QUERY, TEXT))


# Bad input


BAD_REQUESTS = [
    *[
        ((query, TEXT), ValueError, "query: got .*expected a question")
        for query in ("", "\n\t", "\u3000\xa0")
    ],
    ((" ", ""), ValueError, "query: got .*expected a question"),
    *[
        ((value, TEXT), TypeError, "query: got .*; expected a string")
        for value in (None, b"bytes", 5, ["a"])
    ],
    *[
        ((QUERY, value), TypeError, "text: got .*; expected a string")
        for value in (None, b"bytes")
    ],
    ((QUERY, Path("a")), TypeError, "text: got a path, 'a'; expected the text"),
]
NO_PAIRS = ["ab", (QUERY,), (QUERY, TEXT, ""), None, 5, {"query": QUERY, "text": TEXT}]


@pytest.mark.parametrize(
    ("pair", "error", "message"),
    [
        *BAD_REQUESTS,
        *[(pair, TypeError, r"expected \(query, text\)$") for pair in NO_PAIRS],
    ],
)
def test_what_is_no_request_is_refused(
    tiny_scanner: Scanner, pair: Any, error: type[Exception], message: str
) -> None:
    steps: list[tuple[int, int]] = []
    with pytest.raises(error, match=message) as caught:
        tiny_scanner.scan_many(
            [(QUERY, TEXT), pair], progress=lambda *step: steps.append(step)
        )
    assert "\n" not in str(caught.value)
    assert not steps, "all pairs are checked before any is read"
    if pair not in NO_PAIRS:
        with pytest.raises(error, match=message):
            tiny_scanner.scan(*pair)
        with pytest.raises(error, match=message):
            tiny_scanner.score_units(*pair, [])


def test_query_longer_than_a_window(windowed_checkpoint: Path) -> None:
    scanner = load(windowed_checkpoint, window_tokens=20)
    query = "a very long question indeed, " * 5
    tokens = len(encode_question(scanner.checkpoint.tokenizer, query)[0])
    for call in (
        scanner.scan,
        lambda query, text: scanner.score_units(query, text, []),
    ):
        with pytest.raises(
            ValueError, match=f"the query has {tokens} tokens, expected at most 20"
        ):
            call(query, TEXT)
    fits = load(windowed_checkpoint, window_tokens=tokens)
    assert len(fits.scan(query, TEXT).sentences) > 1


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        *[
            (name, value, f"{name} is {value!r}; expected a whole number of at least 1")
            for name in ("segment_tokens", "window_tokens")
            for value in (0, -1, True, 64.0, "64")
        ],
        *[
            ("segmenter", value, "expected 'sentence', 'reference' or an object")
            for value in ("sentences", "", 5, SentenceSegmenter, ["sentence"], True)
        ],
    ],
)
def test_options_are_checked_first(
    tiny_checkpoint: Path, name: str, value: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        load(Path("/nowhere"), **{name: value})  # before the checkpoint is searched for
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match=message):
        Scanner(load_checkpoint(tiny_checkpoint), **{name: value})


# Progress, cancelling


@pytest.mark.parametrize("segment_tokens", [1, 7, 64, 10_000])
def test_progress_of_a_scan(tiny_checkpoint: Path, segment_tokens: int) -> None:
    steps: list[tuple[int, int]] = []
    load(tiny_checkpoint, segment_tokens=segment_tokens).scan(
        QUERY, TEXT, progress=lambda done, total: steps.append((done, total))
    )
    dones, totals = zip(*steps, strict=True)
    # for a single scan, the total is known from the beginning
    assert len(set(totals)) == 1
    assert dones[-1] == totals[0]
    assert all(
        0 < later - before <= segment_tokens
        for before, later in zip((0, *dones), dones, strict=False)
    )


def test_progress_of_windows_and_of_many(windowed_checkpoint: Path) -> None:
    scanner = load(windowed_checkpoint, segment_tokens=50)
    steps: list[tuple[int, int]] = []
    pairs = [(QUERY, TEXT * 2), (QUERY, ""), ("winter", TEXT), ("well", "Short.")] * 3
    scanner.scan_many(pairs, progress=lambda done, total: steps.append((done, total)))
    for (done, total), (next_done, next_total) in itertools.pairwise(steps):
        assert done < next_done
        assert total <= next_total
        assert done <= total
    assert steps[-1][0] == steps[-1][1]


def test_cancelled(tiny_checkpoint: Path) -> None:
    scanner = load(tiny_checkpoint, segment_tokens=10)
    steps: list[int] = []
    with pytest.raises(ScanCancelled, match=r"cancelled after 30 of \d+ tokens"):
        scanner.scan(
            QUERY,
            TEXT,
            progress=lambda done, total: steps.append(done),
            cancelled=lambda: len(steps) == 3,
        )
    assert steps == [10, 20, 30]
    answers = iter([False] * 1000)
    assert len(scanner.scan(QUERY, TEXT, cancelled=lambda: next(answers)).logits) > 5
    with pytest.raises(ScanCancelled):
        scanner.scan_many([(QUERY, TEXT)] * 2, cancelled=lambda: True)


# Threads, other uses


def test_threads_share_a_scanner(
    tiny_scanner: Scanner, windowed_checkpoint: Path
) -> None:
    for scanner in (tiny_scanner, load(windowed_checkpoint, segment_tokens=64)):
        pairs = [(f"Who signed {n}?", TEXT[n * 5 :]) for n in range(24)]
        expected = [scanner.scan(query, text).logits for query, text in pairs]
        with ThreadPoolExecutor(8) as pool:
            results = list(
                pool.map(lambda pair, scanner=scanner: scanner.scan(*pair), pairs * 2)
            )
        for result, logits in zip(results, expected * 2, strict=True):
            np.testing.assert_array_equal(result.logits, logits)


def test_attributes(tiny_checkpoint: Path) -> None:
    scanner = load(tiny_checkpoint)
    assert (
        repr(scanner)
        == f"Scanner({str(tiny_checkpoint)!r}, device='cpu', dtype='float32')"
    )
    assert (scanner.backend, scanner.backend_reason) == ("numba", "numba is installed")
    assert load(tiny_checkpoint, backend="torch").backend_reason == "as asked for"
    assert scanner.segment_tokens == default_segment_tokens(
        "cpu", scanner.checkpoint.model.config
    )
    assert load(tiny_checkpoint, segment_tokens=7).segment_tokens == 7
    assert scanner.device_reason == scanner.dtype_reason == "as asked for"


def test_a_pickled_scanner_scores_the_same(tiny_scanner: Scanner) -> None:
    again = pickle.loads(pickle.dumps(tiny_scanner))
    assert type(again) is Scanner
    assert np.array_equal(
        again.scan(QUERY, TEXT).logits, tiny_scanner.scan(QUERY, TEXT).logits
    )


def test_a_question_and_a_text_that_were_exchanged_are_refused(
    tiny_scanner: Scanner,
) -> None:
    question, text = "Who signed the treaty?", "He signed the treaty. " * 200
    assert len(tiny_scanner.scan(question, text).sentences) == 200
    with pytest.raises(
        ValueError,
        match=(
            r"the query has 4,400 characters and the text 22; expected the question"
            r" first"
        ),
    ):
        tiny_scanner.scan(text, question)
    with pytest.raises(ValueError, match="exchange them"):
        tiny_scanner.scan_many([(question, text), (text, question)])
    # Intended uses: a long question on a longer text, on an empty one, and on texts of
    # which some are short.
    assert tiny_scanner.scan(text, text + text).sentences
    assert tiny_scanner.scan(text, "").sentences == ()
    assert len(tiny_scanner.rank(text, [question, text + text])) == 2
    assert tiny_scanner.score_units(
        text, question, tiny_scanner.units_of(question)
    ).shape == (1,)


def test_passages_of_a_document_that_was_read_have_headings(
    tiny_scanner: Scanner, tmp_path: Path
) -> None:
    (tmp_path / "guide.md").write_text(
        "# Setup\n\nIt rained.\n\n## Linux\n\nHe signed the treaty. She left.\n"
    )
    result = tiny_scanner.scan("who signed?", read(tmp_path / "guide.md"))
    last = result.select(order="document")[-1]
    assert last.cite() == f"{tmp_path / 'guide.md'}, Setup > Linux"
    assert tiny_scanner.scan("who signed?", result.text).select()[-1].headings == ()
