"""Document types, found by entry point."""
