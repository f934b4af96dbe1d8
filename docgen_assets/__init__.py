"""The Dagster code location: it decides when; the state store decides who."""

import warnings

from dagster import BetaWarning, PreviewWarning

# Single-run backfills are beta and partitioned checks a preview in the pinned Dagster; decision 0005 says why both
# are used. Repeating it in every process would only bury the warnings that matter.
warnings.filterwarnings("ignore", category=BetaWarning, message=".*(backfill_policy|owners).*")
warnings.filterwarnings("ignore", category=PreviewWarning, message=".*partitions_def on an AssetCheckSpec.*")
