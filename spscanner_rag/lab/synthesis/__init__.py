"""Training and test data made from anyone's documents with a language model."""
