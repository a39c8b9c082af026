"""A scanner as an HTTP service.

All clients use one model, and their requests share forward passes.
"""
