"""The Dagster code location: it decides when; the state store decides who."""
