"""A scanner as an HTTP service: all clients use one model, and their requests share forward passes."""
