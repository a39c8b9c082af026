"""The sizes of models that are measured, with random weights."""

from pathlib import Path

SHAPES = {
    "default": {
        "hidden_size": 256,
        "num_hidden_layers": 7,
        "vocab_size": 16384,
        "state_size": 64,
    },
    "130m": {
        "hidden_size": 768,
        "num_hidden_layers": 24,
        "vocab_size": 50288,
        "state_size": 128,
    },
    "1.3b": {
        "hidden_size": 2048,
        "num_hidden_layers": 48,
        "vocab_size": 50288,
        "state_size": 128,
    },
    "tiny": {
        "hidden_size": 64,
        "num_hidden_layers": 1,
        "vocab_size": 16384,
        "state_size": 16,
    },
}
"""Keys of transformers' configuration; "default" is the bundled checkpoint's.

All sizes can read its tokens.
"""


def write_random_weights(shape: str, folder: Path) -> None:
    """Write a checkpoint in transformers' layout, the same in every run."""
    import torch
    from transformers import Mamba2Config, Mamba2Model

    torch.manual_seed(0)
    sizes = SHAPES[shape]
    heads = {"num_heads": 2 * sizes["hidden_size"] // 64, "head_dim": 64, "n_groups": 1}
    Mamba2Model(Mamba2Config(**sizes, **heads, expand=2)).save_pretrained(folder)
