"""Training and test data that a language model makes from any documents."""
