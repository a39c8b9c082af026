"""Questions on texts to logits: reading, pipeline and devices of a `Scanner`."""
