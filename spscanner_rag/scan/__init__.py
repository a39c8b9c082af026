"""Turn queries on texts into logits: prepare texts, group them, and read them with the model."""
