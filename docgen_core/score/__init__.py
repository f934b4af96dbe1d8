"""Scoring: predictions of an extractor against the golden set of a run, cell by cell.

`score_run` reads both and counts. It knows tables and columns from the shards' schemas alone, so
that every document type is scored the same way.
"""

from __future__ import annotations

from docgen_core.score.run import Scores, score_run

__all__ = ["Scores", "score_run"]
