"""Start a model's token embedding from word vectors instead of chance."""

import torch
from tokenizers import Tokenizer

from spscanner_rag.lexical.word_vectors import UNKNOWN, WordVectors
from spscanner_rag.mamba2.model import ScannerModel

SCALE = 0.02
"""Standard deviation of the numbers of an embedding before training, whether it starts from words or not."""


def start_embedding(model: ScannerModel, tokenizer: Tokenizer, vectors: WordVectors, seed: int) -> int:
    """Replace the embedding of every token that is a whole word by that word's vector, in place.

    The vectors are projected to the width of the model at random, which keeps their cosines nearly. A token is
    compared without the spaces around it and in lower case; every other token keeps its random embedding. Returns
    the number of tokens replaced.
    """
    ids = range(tokenizer.get_vocab_size())
    rows = vectors.rows(
        tokenizer.decode([number], skip_special_tokens=False).strip().lower() for number in ids
    )
    known = (rows != UNKNOWN).nonzero()[0]  # (known tokens,)
    weight = model.backbone.embedding.weight
    generator = torch.Generator().manual_seed(seed)
    projection = torch.randn(vectors.dimensions, weight.shape[1], generator=generator) * SCALE
    # a vector has length 1, so its projection has the numbers' standard deviation of the projection
    projected = torch.from_numpy(vectors.of_rows(rows[known])) @ projection  # (known tokens, d_model)
    with torch.no_grad():
        weight[torch.from_numpy(known)] = projected.to(weight)
    return len(known)
