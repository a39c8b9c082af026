"""In-context retrieval: a causal language model reads a corpus once and answers with the code of a document."""
