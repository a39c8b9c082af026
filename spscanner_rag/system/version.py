"""The version of the package, which the lowest rooms need as well."""

__version__ = "0.2.0"
