"""A run's life: plan, drain, shards, manifest, finalise, verify."""
