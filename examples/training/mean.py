"""Averages the weights of a scanner and of one that was trained from it.

    python examples/training/mean.py BASE TRAINED --out OUT [--share 0.5]

Training on gains on the kinds of documents that it reads and loses a little on others. The mean of the weights
before and after keeps most of both (Wortsman et al. 2022, "Robust fine-tuning of zero-shot models", arXiv
2109.01903). BASE and TRAINED are folders or Hub ids, "default" is the bundled checkpoint. Calibrate the result
with calibrate.toml.
"""

import argparse
import sys
from dataclasses import replace

import torch

from spscanner_rag.checkpoint import load_checkpoint, save_checkpoint


def main() -> None:
    """Read two checkpoints and write their mean."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("base", metavar="BASE")
    parser.add_argument("trained", metavar="TRAINED")
    parser.add_argument("--out", required=True, help="folder to write")
    parser.add_argument("--share", type=float, default=0.5, help="of the trained weights; default 0.5")
    arguments = parser.parse_args()
    if not 0 <= arguments.share <= 1:
        sys.exit(f"--share: got {arguments.share}; expected a number from 0 to 1")

    base, trained = load_checkpoint(arguments.base), load_checkpoint(arguments.trained)
    if base.model.config != trained.model.config or base.settings.lexical != trained.settings.lexical:
        sys.exit(f"{arguments.base} and {arguments.trained} have not the same shape and lexical channel")
    if base.tokenizer.to_str() != trained.tokenizer.to_str():
        sys.exit(f"{arguments.base} and {arguments.trained} have not the same tokenizer")
    before, after = base.model.state_dict(), trained.model.state_dict()
    trained.model.load_state_dict(
        {name: torch.lerp(before[name].float(), after[name].float(), arguments.share) for name in after}
    )
    record = trained.settings.training | {"mean": {"with": arguments.base, "share": arguments.share}}
    save_checkpoint(
        arguments.out,
        trained.model,
        replace(trained.settings, training=record),
        trained.tokenizer,
        word_vectors=trained.word_vectors,
        encoder=trained.encoder_file,
    )
    sys.stdout.write(f"{arguments.out}: the mean\n")


if __name__ == "__main__":
    main()
