"""Questions on texts become logits: prepared, packed and read by the model."""
