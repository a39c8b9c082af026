"""Training of in-context retrieval."""
