"""The invoice pack."""
