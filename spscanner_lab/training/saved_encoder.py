"""Save a scanner's checkpoint with another encoder or sentence scan."""

from pathlib import Path

import torch

from spscanner_lab.training.model_card import write_model_card
from spscanner_rag.checkpoint import Checkpoint, ScannerSettings
from spscanner_rag.checkpoint.encoder_file import EncoderFile
from spscanner_rag.checkpoint.save import save_checkpoint


def save_with_encoder(
    out: Path, checkpoint: Checkpoint, settings: ScannerSettings, encoder: EncoderFile
) -> None:
    """Save a checkpoint with other settings and another encoder's file.

    It gets a model card if its scanner was trained here.

    Parameters
    ----------
    out : Path
        The folder for the checkpoint.
    checkpoint : Checkpoint
        Has the model, the tokenizer and the word vectors.
    settings : ScannerSettings
        With the weights of the encoder.
    encoder : EncoderFile
        The encoder, with its cross-reader and its sentence scan, if any.
    """
    save_checkpoint(
        out,
        checkpoint.model,
        settings,
        checkpoint.tokenizer,
        torch.bfloat16,
        word_vectors=checkpoint.word_vectors,
        encoder=encoder,
    )
    if "stage" in settings.training:
        write_model_card(out, checkpoint.model, settings, checkpoint.word_vectors)
