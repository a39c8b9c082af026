"""Operations of the products of models, by formula.

A multiply-add counts as two. Products are nearly all of the work. The Single-Pass
Scanner paper prints no formula; its Table 2 amounts to 275 million operations a token
for the scanner of 130 million weights, and `scan_products` to 202 million: the paper's
number probably has a language-model head, which no scanner needs, and all of the last
layer.
"""

from collections.abc import Sequence
from typing import Protocol

from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.ssd_blocks import CHUNK_TOKENS


class EncoderShape(Protocol):
    """The sizes of a BERT-like encoder, under the names of its ``config.json``."""

    @property
    def hidden_size(self) -> int:
        """The width of a token's state."""
        ...

    @property
    def num_hidden_layers(self) -> int:
        """The number of layers."""
        ...

    @property
    def intermediate_size(self) -> int:
        """The width inside the feed-forward network of a layer."""
        ...


def scan_products(config: Mamba2Config, tokens: int, units: int) -> float:
    """Operations of the products of a scan.

    State space blocks are full squares. The last layer's output projection is computed
    only for the ends of units.

    Parameters
    ----------
    config : Mamba2Config
        The sizes of the model.
    tokens : int
        Tokens that the model reads, those of the question and padding included.
    units : int
        Units that get a logit.

    Examples
    --------
    >>> from spscanner_lab.evaluation.operations import scan_products
    >>> from spscanner_rag.mamba2.config import Mamba2Config
    >>> shape = Mamba2Config(d_model=768, n_layer=24, vocab_size=50288)
    >>> f"{scan_products(shape, tokens=1000, units=40) / 1e12:.3f} TFLOPs"
    '0.202 TFLOPs'
    """
    d_inner = config.d_inner
    d_state = config.d_state
    input_projection = config.d_model * config.d_in_proj
    convolution = config.d_conv * config.conv_dim
    # inside a block: C . B, and mixing @ x
    block = CHUNK_TOKENS * (config.ngroups * d_state + d_inner)
    # what the block adds to the state, and the state to the block
    state = 2 * d_inner * d_state
    output_projection = d_inner * config.d_model
    mixing = config.n_layer * (input_projection + convolution + block + state)
    of_token = mixing + (config.n_layer - 1) * output_projection
    of_unit = output_projection + config.d_model
    return 2.0 * (tokens * of_token + units * of_unit)


def encoder_products(shape: EncoderShape, lengths: Sequence[int]) -> float:
    """Operations of the products of an encoder that reads sequences of these lengths.

    Lengths are in tokens, special tokens included; `padded_lengths` adds padding.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from spscanner_lab.evaluation.operations import encoder_products
    >>> minilm = SimpleNamespace(
    ...     hidden_size=384, num_hidden_layers=6, intermediate_size=1536
    ... )
    >>> encoder_products(minilm, [100]) / 1e9
    2.2155264
    """
    width = shape.hidden_size
    projections = 4 * width**2  # query, key, value and output
    feed_forward = 2 * width * shape.intermediate_size
    products = 0.0
    for length in lengths:
        attention = 2 * length**2 * width  # queries with keys, weights with values
        products += length * (projections + feed_forward) + attention
    return 2.0 * shape.num_hidden_layers * products


def padded_lengths(lengths: Sequence[int], batch_size: int) -> list[int]:
    """Lengths with padding to the longest of each batch, batches in the order given.

    Examples
    --------
    >>> from spscanner_lab.evaluation.operations import padded_lengths
    >>> padded_lengths([9, 7, 5, 1], batch_size=2)
    [9, 9, 5, 5]
    """
    padded = []
    for start in range(0, len(lengths), batch_size):
        batch = lengths[start : start + batch_size]
        padded += [max(batch)] * len(batch)
    return padded
