"""Language models as rerankers: their prompts, their replies, and the orders that come of them."""
