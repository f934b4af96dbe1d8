"""Export: from a run's golden shards to tables, through one sink contract."""
