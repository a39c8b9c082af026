"""In-context retrieval with a causal language model.

It reads all documents and answers a query with the code of one of them.
"""
