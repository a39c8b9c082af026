"""Turn sentences into vectors in their context, with the checkpoint's small BERT or a model of the user."""
