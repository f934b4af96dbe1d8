"""The definitions, one module a kind.

These modules do without `from __future__ import annotations`: Dagster reads the annotation of a
`config` or resource parameter as the class it is, and cannot resolve its text.
"""
