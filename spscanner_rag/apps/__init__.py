"""What people touch: the command line, pages, the server, batches."""
