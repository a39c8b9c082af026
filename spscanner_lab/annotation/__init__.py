"""Evidence for questions that have answers, labelled and checked by language models."""
