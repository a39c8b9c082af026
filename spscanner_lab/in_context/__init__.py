"""In-context retrieval: a causal language model that reads all documents and answers with the code of one."""
