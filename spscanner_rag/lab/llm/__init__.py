"""Language models that are paid for: replies that are kept, usage, budget, pace, structured replies."""
