"""Trains a small in-context retriever (BlockSearch) on questions with known evidence, on a processor.

    python examples/training/block_search.py --data train.jsonl --out DIR --words 20 --steps 2000
    python examples/training/block_search.py --data train.jsonl --out DIR2 --base DIR --words 100 --steps 500

It starts from nothing but the bundled checkpoint's tokenizer and token embedding, or from ``--base``: a folder of
an earlier run, or of a Qwen3 model. The result is the retriever ``blocksearch:DIR``.
"""

import argparse
import sys
from itertools import islice
from pathlib import Path

import torch
from tokenizers import Tokenizer

from spscanner_rag.baselines.in_context.model import BlockSearchModel, ReadingSettings
from spscanner_rag.baselines.units import ChunkSegmenter
from spscanner_rag.checkpoint import load_checkpoint
from spscanner_rag.evidence.questions import read_documents
from spscanner_rag.training.data.columns import PassageDraw
from spscanner_rag.training.data.document_store import DocumentStore
from spscanner_rag.training.in_context.run import InContextRecipe, train
from spscanner_rag.training.recipe import Recipe

SHAPE = {
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "tie_word_embeddings": True,
    "rope_theta": 1_000_000.0,
}


def new_model(seed: int) -> BlockSearchModel:
    """Six layers, as wide as the bundled checkpoint, whose token embedding they start from; routing at layer 3."""
    base = load_checkpoint()
    tokenizer = Tokenizer.from_str(base.tokenizer.to_str())
    tokenizer.add_special_tokens(["<|begin|>", "<|end|>"])
    width = base.model.config.d_model
    ends = {
        "bos_token_id": tokenizer.token_to_id("<|begin|>"),
        "eos_token_id": tokenizer.token_to_id("<|end|>"),
    }
    shape = SHAPE | ends | {"hidden_size": width, "intermediate_size": 3 * width}
    model = BlockSearchModel.new(tokenizer, shape, ReadingSettings(routing_layer=3), seed)
    learnt = base.model.backbone.embedding.weight.float()
    rows = min(len(learnt), base.tokenizer.get_vocab_size())
    with torch.no_grad():
        weight = model.decoder.model.embed_tokens.weight
        weight[:rows] = learnt[:rows] * (weight.std() / learnt.std())
        for layer in model.decoder.model.layers:  # equal tokens attend to each other from the first step
            layer.self_attn.k_proj.weight.copy_(layer.self_attn.q_proj.weight)
    return model


def main() -> None:
    """Train, and save the model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, action="extend", nargs="+", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--base", type=Path)
    parser.add_argument("--documents", type=int, default=100, help="documents of the data to train on")
    parser.add_argument("--words", type=int, default=100, help="words of a passage")
    parser.add_argument("--queries", type=int, default=8, help="queries of a step")
    parser.add_argument("--negatives", type=int, default=1, help="hard negatives of each query")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--warmup-steps", type=int, default=100)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--auxiliary-weight", type=float, default=0.5)
    parser.add_argument("--dtype", default="bfloat16", help="of matrix products: bfloat16 or float32")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    model = (
        BlockSearchModel.from_pretrained(given.base, dtype="float32") if given.base else new_model(given.seed)
    )
    store = DocumentStore(islice(read_documents(given.data), given.documents))
    draw = Recipe(rerank_negatives=given.negatives, seed=given.seed)
    passages = PassageDraw(store, draw, ChunkSegmenter(given.words), model.layout.tokenizer)
    recipe = InContextRecipe(
        steps=given.steps,
        queries=given.queries,
        learning_rate=given.learning_rate,
        warmup_steps=given.warmup_steps,
        auxiliary_weight=given.auxiliary_weight,
        dtype=given.dtype,
        seed=given.seed,
    )
    mean = None
    for step in train(model, passages, recipe, given.out):
        mean = step.loss if mean is None else 0.95 * mean + 0.05 * step.loss
        if step.step % 20 == 0:
            line = f"step {step.step:,} of {given.steps:,}  loss {mean:.4f}  auxiliary {step.auxiliary:.4f}"
            print(f"{line}  {step.tokens} tokens  {step.seconds:.2f} s", file=sys.stderr, flush=True)
    model.save(given.out)


if __name__ == "__main__":
    main()
