"""Questions on texts to logits: reading, pipeline, devices; see `Scanner`."""
