"""A token embedding that starts from word vectors."""

import numpy as np
import torch

from spscanner_rag.lab.training.initial_weights import SCALE, start_embedding
from spscanner_rag.lab.training.start import train_tokenizer
from spscanner_rag.lexical.word_vectors import WordVectors
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import ScannerModel

WORDS = ("ship", "boat", "mast", "zebra")


def test_tokens_that_are_words_start_from_them_and_others_stay() -> None:
    tokenizer = train_tokenizer(["a ship, a boat; Ship mast ships " * 20], 300)
    config = Mamba2Config(d_model=512, n_layer=1, vocab_size=tokenizer.get_vocab_size(), d_state=8, headdim=8)
    torch.manual_seed(0)
    model = ScannerModel(config)
    before = model.backbone.embedding.weight.detach().clone()
    random = np.random.default_rng(0)
    vectors = random.normal(size=(4, 96)).astype(np.float32)
    vectors[1] = vectors[0] + 0.3 * vectors[1]  # a boat is like a ship
    table = WordVectors.of_vectors(WORDS, vectors)

    replaced = start_embedding(model, tokenizer, table, seed=0)

    words = [tokenizer.decode([n]).strip().lower() for n in range(tokenizer.get_vocab_size())]
    known = [number for number, word in enumerate(words) if word in WORDS]
    assert replaced == len(known) >= 3
    after = model.backbone.embedding.weight.detach()
    same = (after == before).all(dim=1)[: len(words)]
    assert (~same).nonzero()[:, 0].tolist() == known
    assert abs(after[known].std().item() / SCALE - 1) < 0.1
    ship, boat, mast = (after[words.index(word)] for word in ("ship", "boat", "mast"))
    near, far = (torch.cosine_similarity(ship, other, dim=0).item() for other in (boat, mast))
    cosines = table.of_rows(np.arange(3)) @ table.of_rows(np.arange(1))[0]
    assert abs(near - cosines[1]) < 0.15
    assert abs(far - cosines[2]) < 0.15
    assert after.requires_grad is False
    assert model.backbone.embedding.weight.requires_grad
    start_embedding(model, tokenizer, table, seed=0)
    assert torch.equal(model.backbone.embedding.weight.detach(), after), "the same every time"
