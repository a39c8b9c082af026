"""Answers of a language model to questions, and their judgement."""
