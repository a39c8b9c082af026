"""Fine-tuning a scanner, or training a small one from nothing."""
