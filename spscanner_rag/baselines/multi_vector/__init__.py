"""Retrievers that compare several vectors of a unit: those of its tokens, or those of its sentences."""
