"""The names of the files of a checkpoint."""

from typing import Final

CONFIG: Final = "config.json"
PLACE: Final = ".new-checkpoint"  # where an interrupted save left the files
SAFETENSORS: Final = "model.safetensors"
PICKLED: Final = "pytorch_model.bin"
TOKENIZER: Final = "tokenizer.json"
WORD_VECTORS: Final = "word_vectors.safetensors"
ENCODER: Final = "encoder.safetensors"
FILES: Final = (CONFIG, SAFETENSORS, TOKENIZER, WORD_VECTORS, ENCODER)
"""The files that a checkpoint of ours may have; ``config.json`` has the digests of
the others."""
