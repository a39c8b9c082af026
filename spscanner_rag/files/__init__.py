"""Documents are read from files here, and results written to them: whole or not at all, or line by line."""
