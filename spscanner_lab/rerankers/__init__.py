"""Retrievers of the survey that ask a language model, and RPRS."""
