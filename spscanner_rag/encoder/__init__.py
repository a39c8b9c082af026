"""Sentences as vectors in their context, and how much these vectors count."""
