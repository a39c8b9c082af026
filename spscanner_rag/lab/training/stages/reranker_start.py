"""The model that a reranker's training starts from: any checkpoint, without its lexical channel."""

from dataclasses import replace

import torch
from tokenizers import Tokenizer

from spscanner_rag.baselines.mamba_reranker import END_TOKENS
from spscanner_rag.checkpoint import Checkpoint, ScannerSettings, new_model


def as_reranker(start: Checkpoint, seed: int) -> Checkpoint:
    """A checkpoint whose model reads pairs of query and document.

    Backbone and head are those of ``start``; a lexical channel, which a reranker does not have, is left out. A
    tokenizer without an end token gains one, and the embedding a row for it, which ``seed`` determines. ``start``
    is not changed.
    """
    tokenizer, config = start.tokenizer, start.model.config
    if all(tokenizer.token_to_id(name) is None for name in END_TOKENS):
        tokenizer = Tokenizer.from_str(tokenizer.to_str())
        tokenizer.add_special_tokens([END_TOKENS[0]])
        config = replace(config, vocab_size=max(config.vocab_size, tokenizer.get_vocab_size()))
    settings = ScannerSettings()
    torch.manual_seed(seed)
    model = new_model(config, settings).to(start.model.device)
    own = start.model.state_dict()
    with torch.no_grad():
        for name, target in model.state_dict().items():
            target[: len(own[name])] = own[name]  # a larger vocabulary has further rows
    return replace(start, model=model, settings=settings, tokenizer=tokenizer, word_vectors=None)
