"""Language models that cost money: stored replies, usage, budget and pace."""
