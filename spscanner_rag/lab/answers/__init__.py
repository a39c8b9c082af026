"""Answers of a language model to questions, and how they are judged."""
