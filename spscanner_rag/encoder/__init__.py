"""Turn sentences into vectors in their context, by a small BERT of the checkpoint or a model of the user."""
