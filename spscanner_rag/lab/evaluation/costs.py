"""The cost of scoring a document: operations by the formulas of :mod:`.flops`, and peak memory."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from spscanner_rag.baselines.dense import Dense
from spscanner_rag.lab.evaluation.corpus_units import CorpusUnits
from spscanner_rag.lab.evaluation.flops import EncoderShape, encoder_flops, padded_lengths, scan_flops
from spscanner_rag.scan.prepare import repeats_every
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Scorer
from spscanner_rag.text.units import Unit

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


class Cost(NamedTuple):
    """Gigaflops for the first question on a document, without and with the padding of batches."""

    gigaflops: float
    padded: float


def cost_of(scorer: Scorer, query: str, text: str, units: Sequence[Unit]) -> Cost | None:
    """The operations of one question on a document.

    There are formulas for scanners and for `Dense` with a BERT-like model of sentence-transformers; None for
    other scorers: what a language model or a server computes for a prompt or a request cannot be seen from here.
    A scanner pads nothing that counts: one text fills its passes.
    """
    if isinstance(scorer, Scanner):
        question = scorer.count_tokens(query) + 1  # the line break after it
        tokens = scorer.count_tokens(text)
        every = repeats_every(scorer.reading.reanchor_tokens, question)
        again = tokens // every if every else 0
        config = scorer.checkpoint.model.config
        gigaflops = scan_flops(config, tokens + question * (1 + again), len(units)).total / 1e9
        return Cost(gigaflops, gigaflops)
    if isinstance(scorer, Dense):
        return _encoder_cost(scorer, query, text, units)
    return None


def index_megabytes(scorer: Scorer, units: CorpusUnits, collection: Sequence[int]) -> float:
    """Megabytes that a retriever keeps of a corpus between questions: vectors, keys, values, counts of words.

    The parts of a hybrid and the stages of a cascade add up; the counts of words, which all of them share, count
    once. A remote scanner's words are counted here and sent to its server.
    """
    words = 0
    if getattr(scorer, "uses_collection", False) and _counts_words(scorer):
        words = units.index(collection).n_bytes
    return (words + _index_bytes(scorer)) / 1e6


def _counts_words(scorer: object) -> bool:
    parts = getattr(scorer, "scorers", None)
    if parts is None:
        return bool(getattr(scorer, "uses_collection", False))
    return any(map(_counts_words, parts))


def _index_bytes(scorer: object) -> int:
    own: int = getattr(scorer, "index_bytes", 0)
    return own + sum(map(_index_bytes, getattr(scorer, "scorers", ())))


class PeakMemory:
    """Measures the peak memory of this process since the object was created, on Linux.

    The kernel keeps one peak for a process, which a new object resets: use one object at a time.
    """

    def __init__(self) -> None:
        try:
            _RESET.write_text("5", encoding="ascii")
            self._known = True
        except OSError:  # not Linux, or not permitted
            self._known = False

    def megabytes(self) -> float | None:
        """Megabytes of resident memory at the peak, models included; None where the system does not report it."""
        found = _PEAK.search(_STATUS.read_text(encoding="ascii")) if self._known else None
        return None if found is None else int(found[1]) * 1024 / 1e6


def _encoder_cost(scorer: Dense, query: str, text: str, units: Sequence[Unit]) -> Cost | None:
    model = scorer.sentence_transformer
    config = getattr(getattr(model and model[0], "auto_model", None), "config", None)
    if config is None or getattr(config, "model_type", "") != "bert":
        return None
    shape = EncoderShape(
        config.num_hidden_layers, config.hidden_size, config.intermediate_size, config.num_attention_heads
    )
    cut = {"truncation": True, "max_length": model.max_seq_length}
    read = model.tokenizer([*scorer.passages_of(text, units), query], **cut)["input_ids"]
    *lengths, asked = map(len, read)
    lengths.sort(reverse=True)  # as sentence-transformers does before it makes batches
    padded = [*padded_lengths(lengths, scorer.batch_size).tolist(), asked]
    return Cost(encoder_flops(shape, [*lengths, asked]).total / 1e9, encoder_flops(shape, padded).total / 1e9)
