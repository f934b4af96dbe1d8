"""docgen: synthetic business documents together with their golden set."""

__version__ = "0.1.0"
