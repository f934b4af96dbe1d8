"""Blob stores: whole objects under keys, chosen by URI scheme."""
