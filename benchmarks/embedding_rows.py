"""The time of a dense-embedding pass over a document against a scan of the same text.

all-MiniLM-L6-v2 embeds the sentences. A decoder with random weights embeds chunks of 300 words. All of them start
from the text, so every time includes segmenting and tokenizing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.clock import Row, median_seconds, seconds_of, too_long
from benchmarks.decoder_embedder import SHAPES, DecoderEmbedder
from benchmarks.example_text import QUESTION, text_of_tokens

if TYPE_CHECKING:
    from spscanner_rag import Scanner

MINILM = "all-MiniLM-L6-v2"
EMBEDDERS = (MINILM, *SHAPES)
SCAN = "scan"

EmbedText = Callable[[str], object]

_TRIED_SHARE = 20  # one part in 20 of the text is read first, to warm up and to estimate the whole time
_BATCH_SIZE = {"cpu": 32, "cuda": 256}


def embedding_rows(
    scanner: Scanner, embedders: Sequence[str], tokens: int, repeats: int, longest: float
) -> dict[str, Row]:
    """Rows of the scan and of each embedder over a text of about ``tokens`` tokens of the bundled tokenizer."""
    text = text_of_tokens(tokens)
    rows: dict[str, Row] = {}
    runs: dict[str, Callable[[], object]] = {}
    programs: dict[str, Callable[[], EmbedText]] = {SCAN: lambda: partial(scanner.scan, QUESTION)}
    programs |= {name: partial(_embedder, name, scanner) for name in embedders}
    for name, load in programs.items():
        try:
            program = load()
            part = text[: len(text) // _TRIED_SHARE]
            expected = seconds_of(partial(program, part), scanner.device) * _TRIED_SHARE
        except (ImportError, ValueError, RuntimeError) as error:
            rows[name] = f"not measured: {error}"
            continue
        if expected > longest:
            rows[name] = too_long(expected)
        else:
            runs[name] = partial(program, text)
    read = scanner.count_tokens(text)
    seconds = median_seconds(runs, repeats, scanner.device)
    for name, taken in seconds.items():
        rows[name] = {"ms": 1e3 * taken, "tokens/s": read / taken}
        if SCAN in seconds:
            rows[name] |= {"times the scan": taken / seconds[SCAN]}  # type: ignore[operator]
    return {name: rows[name] for name in programs}


def _embedder(name: str, scanner: Scanner) -> EmbedText:
    return _minilm(scanner) if name == MINILM else _decoder(name, scanner)


def _minilm(scanner: Scanner) -> EmbedText:
    from spscanner_rag.baselines.embedders import MINILM as MODEL
    from spscanner_rag.baselines.embedders import embed_checked, encoder_of
    from spscanner_rag.text.segmentation import SentenceSegmenter

    kind = scanner.device.type
    encoder = encoder_of(MODEL, device=kind, batch_size=_BATCH_SIZE[kind])
    if kind == "cuda":
        encoder.model.to(scanner.dtype)  # on a CPU it stays in float32

    def embed(text: str) -> object:
        units = SentenceSegmenter().segment(text)
        return embed_checked(encoder.passages, [text[unit.start : unit.end] for unit in units])

    return embed


def _decoder(name: str, scanner: Scanner) -> EmbedText:
    from spscanner_rag.baselines.units import ChunkSegmenter

    embedder = DecoderEmbedder(name, scanner.device, scanner.dtype)

    def embed(text: str) -> object:
        # our tokenizer replaces the decoder's own, because its ids are random
        return embedder.embed(
            [scanner.count_tokens(unit.model_text) for unit in ChunkSegmenter().segment(text)]
        )

    return embed
