"""The framework-free half of the integrations: pieces of documents, search over them, which scorer is asked."""
