"""What people use: the command line, pages, the servers, batches."""
