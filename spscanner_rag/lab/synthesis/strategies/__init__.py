"""What questions are made of: two linked parts of a document, one chunk, or a pair of similar chunks."""
