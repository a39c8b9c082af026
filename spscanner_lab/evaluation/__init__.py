"""Evaluation: how much of the known evidence in documents a scorer finds."""
