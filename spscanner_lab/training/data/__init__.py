"""Training data: files, the questions drawn from them, and the examples made from these."""
