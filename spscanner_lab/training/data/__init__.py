"""Training data: documents, the questions drawn from them, and their examples."""
