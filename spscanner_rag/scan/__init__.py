"""Queries on texts become logits: texts are prepared, grouped and read by the model."""
