"""A scanner as an HTTP service: one model for all clients, their requests packed into shared forward passes."""
