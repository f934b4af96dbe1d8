"""Texts by language models: replies, gates, routing, budget and cache; one module calls the models.

`calls` alone imports litellm, and only when a model is called. What does not belong here: what a
catalogue holds and what its texts are about (packs), and units, shards and roots (runs).
"""
