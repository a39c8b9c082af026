"""Reading documents from files, and writing results to files: whole or not at all, or line by line."""
