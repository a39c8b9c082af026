"""The cost of scoring a document: floating-point operations by formula, peak memory, the size of an index.

A multiply-add is 2 operations; any other operation on one number (add, multiply, compare, exp, erf, square root)
is 1. Operations without arithmetic (embedding look-up, copies, masks) are 0. The formula counts what
:mod:`spscanner_rag.mamba2` computes on a CPU and takes blocks of the state space as full. Gate, norm and output
projection of the last layer are computed for the ends of units only: no other token's output is used.

The paper prints no formula. Its Table 2 amounts to 275 MFLOP per token for 130M and 2.86 GFLOP for 1.3B; this
formula, with our blocks of 64 tokens, gives 203 MFLOP (26 % less) and 2.60 GFLOP (9 % less). The last layer in
full for every token and a language-model head over the 50,288 words, neither of which a scanner needs, bring that
to 283 MFLOP (3 % more) and 2.82 GFLOP (1 % less), so the paper's numbers probably include both.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.baselines.dense import Dense
from spscanner_rag.lab.evaluation.corpora import CorpusUnits
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.ssd import CHUNK_TOKENS
from spscanner_rag.scan.prepare import repeats_every
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Scorer
from spscanner_rag.text.units import Unit

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)

Flops = NDArray[np.float64]
"""Operations of products (projections, convolution, SSD or attention), and of single numbers: (2,)."""

_NORM = 4  # of one number in an RMS norm: square, sum, divide, weight
_LAYER_NORM = 7  # also: sum, subtract the mean, bias
_SILU = 2  # sigmoid, times the number
_GELU = 5  # x * 0.5 * (1 + erf(x / sqrt(2)))
_SOFTMAX = 5  # scale, subtract the greatest, exp, sum, divide


def gigaflops_of(scorer: Scorer, query: str, text: str, units: Sequence[Unit]) -> float | None:
    """The operations of the first question on a document; None for a scorer without a formula.

    There are formulas for scanners and for `Dense` with a BERT-like model. What a language model or a server
    computes cannot be seen from here.
    """
    if isinstance(scorer, Scanner):
        question = scorer.count_tokens(query) + 1  # the line break after it
        tokens = scorer.count_tokens(text)
        every = repeats_every(scorer.reading.reanchor_tokens, question)
        again = tokens // every if every else 0
        config = scorer.checkpoint.model.config
        return float(scan_flops(config, tokens + question * (1 + again), len(units)).sum()) / 1e9
    if isinstance(scorer, Dense):
        return _encoder_gigaflops(scorer, query, text, units)
    return None


def index_megabytes(scorer: Scorer, units: CorpusUnits, collection: Sequence[int]) -> float:
    """Megabytes that a retriever keeps of a corpus between questions: vectors, keys, values, counts of words.

    The parts of a hybrid and the stages of a cascade add up; the counts of words, which all of them share, count
    once. A remote scanner's words are counted here and sent to its server.
    """
    parts = list(_parts(scorer))
    counts = any(getattr(part, "uses_collection", False) for part in parts if not hasattr(part, "scorers"))
    words = units.index(collection).n_bytes if counts and getattr(scorer, "uses_collection", False) else 0
    return (words + sum(getattr(part, "index_bytes", 0) for part in parts)) / 1e6


def _parts(scorer: object) -> Iterator[object]:
    yield scorer
    for part in getattr(scorer, "scorers", ()):
        yield from _parts(part)


class PeakMemory:
    """Measures the peak memory of this process, on Linux; the kernel keeps one peak, which a new object resets."""

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


def _encoder_gigaflops(scorer: Dense, query: str, text: str, units: Sequence[Unit]) -> float | None:
    model = scorer.sentence_transformer
    config = getattr(getattr(model and model[0], "auto_model", None), "config", None)
    if config is None or getattr(config, "model_type", "") != "bert":
        return None
    cut = {"truncation": True, "max_length": model.max_seq_length}
    read = model.tokenizer([*scorer.passages_of(text, units), query], **cut)["input_ids"]
    return float(encoder_flops(config, list(map(len, read))).sum()) / 1e9


def flops_per_token(config: Mamba2Config) -> Flops:
    """Operations of the Mamba-2 backbone for a token of a long document; blocks are full squares."""
    d_inner, d_state = config.d_inner, config.d_state
    projection, convolution = 2 * config.d_model * config.d_in_proj, 2 * config.d_conv * config.conv_dim
    similarity = 2 * CHUNK_TOKENS * config.ngroups * d_state  # C . B
    inside_block = 2 * CHUNK_TOKENS * d_inner  # mixing @ x
    state = 4 * d_inner * d_state  # what the block adds to the state, and what the state gives to the block
    products = projection + convolution + similarity + inside_block + state
    mixing = np.array([products, _NORM * config.d_model + _elementwise(config)])
    total: Flops = mixing * config.n_layer + _after_mixing(config) * (config.n_layer - 1)
    return total


def flops_per_unit(config: Mamba2Config) -> Flops:
    """Additional operations for the last token of a unit: the rest of the last layer, the relevance head."""
    return _after_mixing(config) + np.array([2 * config.d_model, _NORM * config.d_model + 1], np.float64)


def scan_flops(config: Mamba2Config, tokens: int, units: int) -> Flops:
    """Operations of a scan: ``tokens``, repeated questions and padding included, and the units' logits."""
    return flops_per_token(config) * tokens + flops_per_unit(config) * units


def encoder_flops(config: Any, lengths: Sequence[int]) -> Flops:  # noqa: ANN401 - transformers' BertConfig
    """Operations of a BERT for sequences of these lengths in tokens, with the mean over tokens at the end."""
    counts = np.asarray(lengths, np.float64)
    tokens, pairs = float(counts.sum()), float((counts**2).sum())
    d_model, feed_forward = config.hidden_size, config.intermediate_size
    biases = 5 * d_model + feed_forward  # query, key, value and output; both of the feed-forward network
    around = biases + 2 * d_model * (1 + _LAYER_NORM) + _GELU * feed_forward
    projections = tokens * 2 * (4 * d_model**2 + 2 * d_model * feed_forward)
    mixing = 4 * pairs * d_model  # queries with keys, weights with values
    elementwise = tokens * around + pairs * config.num_attention_heads * _SOFTMAX
    ends = tokens * d_model * (2 + _LAYER_NORM + 1)  # three embeddings, their norm, the mean
    layers: Flops = np.array([projections + mixing, elementwise]) * config.num_hidden_layers
    return layers + np.array([0.0, ends], np.float64)


def _after_mixing(config: Mamba2Config) -> Flops:
    """Gate and norm, output projection and residual of one layer, for one token."""
    gate = (_SILU + 1 + (_NORM if config.rmsnorm else 0)) * config.d_inner
    added = (1 + config.bias) * config.d_model
    return np.array([2 * config.d_inner * config.d_model, gate + added])


def _elementwise(config: Mamba2Config) -> float:
    """One layer from the input projection to the state space's output, for one token."""
    d_inner, nheads = config.d_inner, config.nheads
    biases = config.d_in_proj * config.bias
    convolution = (_SILU + config.conv_bias) * config.conv_dim
    steps = 7 * nheads  # dt: bias and softplus; times A, summed up; three decays from or to a block's edge
    decays = 3 * nheads * CHUNK_TOKENS  # between two tokens: subtract, exp, times the similarity
    scaled = (1 + 1 + 2 + 2) * d_inner  # times dt, times the decay; add what the state gives; skip connection
    state = 2 * d_inner * config.d_state / CHUNK_TOKENS  # once a block: decay it, add to it
    return biases + convolution + steps + decays + scaled + state
