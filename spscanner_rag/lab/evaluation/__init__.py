"""Documents with known evidence, and how much of it a scorer finds."""
