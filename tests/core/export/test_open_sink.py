"""A sink is chosen by its URI, and a wrong one is told in a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from docgen_core.errors import UsageError
from docgen_core.export import open_sink
from docgen_core.export.duckdb import DuckDBSink
from docgen_core.export.parquet import ParquetSink


@pytest.mark.parametrize(
    ("uri", "kind", "opened"),
    [
        ("duckdb:///data/golden.duckdb", DuckDBSink, "duckdb:///data/golden.duckdb"),
        ("duckdb:///data/golden.db?memory_mb=256", DuckDBSink, "duckdb:///data/golden.db?memory_mb=256"),
        ("/data/a b#c.duckdb?wait_seconds=0.5", DuckDBSink, "duckdb:///data/a%20b%23c.duckdb?wait_seconds=0.5"),
        ("duckdb:///data/a%20b%23c.duckdb", DuckDBSink, "duckdb:///data/a%20b%23c.duckdb"),
        ("/data/GOLDEN.DUCKDB", DuckDBSink, "duckdb:///data/GOLDEN.DUCKDB"),
        ("parquet:///data/a#b", ParquetSink, "parquet:///data/a%23b"),
        ("parquet:///data/tables", ParquetSink, "parquet:///data/tables"),
        ("parquet:///data/a%20b", ParquetSink, "parquet:///data/a%20b"),
        ("/data/tables", ParquetSink, "parquet:///data/tables"),
        ("parquet://memory://sink", ParquetSink, "parquet://memory://sink"),
    ],
)
def test_the_scheme_or_the_suffix_decides(uri: str, kind: type, opened: str) -> None:
    sink = open_sink(uri)
    assert type(sink) is kind
    assert sink.uri == opened
    assert open_sink(sink.uri).uri == opened


def test_bare_paths_are_relative_to_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_sink("golden.duckdb").uri == f"duckdb://{tmp_path}/golden.duckdb"
    assert open_sink("out/tables").uri == f"parquet://{tmp_path}/out/tables"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("uri", "named"),
    [
        ("bigtable://project/dataset", "unknown scheme 'bigtable'; there are athena, bigquery, duckdb, parquet"),
        ("", "names no place"),
        ("duckdb://", "names no place"),
        ("parquet:///", "names no place"),
        ("duckdb://golden.duckdb", "three slashes"),
        ("parquet://tables", "three slashes"),
        ("bigquery://project", "names no project and dataset; write bigquery://project/dataset?staging=gs://"),
        ("bigquery://project/da-ta?staging=gs://bucket/x", "names no project and dataset"),
        ("bigquery://project/dataset", "needs a bucket to stage shards in"),
        ("bigquery://project/dataset?staging=s3://bucket/x", "needs a bucket to stage shards in"),
        (
            "bigquery://project/dataset?stage=gs://bucket/x",
            "unknown or empty parameter 'stage'; there are staging, location",
        ),
        ("athena://Golden?output=s3://bucket/x", "names no database (small letters, digits and _)"),
        ("athena://golden", "needs a place for its files; write athena://database?output=s3://bucket/prefix"),
        ("athena://golden?output=gs://bucket/x", "needs a place for its files"),
        (
            "athena://golden?output=s3://bucket/x&zone=a",
            "unknown or empty parameter 'zone'; there are output, workgroup",
        ),
        ("athena://golden?output=s3://bucket/x&region=", "unknown or empty parameter 'region'"),
        ("parquet://ftp://host/dir", "unknown scheme 'ftp'"),
        ("out/tables?memory_mb=64", "a folder of Parquet files takes no parameters"),
        ("parquet:///data/tables?x=1", "takes no parameters"),
        ("bigquery://", "names no project and dataset"),
        ("golden.duckdb?memory_mb=64&memory_mb=128", "sets something twice"),
        ("golden.duckdb?memory=1", "unknown parameter 'memory'; there are memory_mb, wait_seconds"),
        ("golden.duckdb?memory_mb=lots", "memory_mb is a whole number, not 'lots'"),
        ("golden.duckdb?memory_mb=1", "memory_mb is between 64 and"),
        ("golden.duckdb?wait_seconds=nan", "wait_seconds is between 0 and"),
    ],
)
def test_a_uri_that_cannot_be_is_told_in_a_line(uri: str, named: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_sink(uri)
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_client_that_gives_no_connection_is_refused() -> None:
    with pytest.raises(UsageError, match="a function that gives a connection"):
        open_sink("golden.duckdb", client=object())


def test_an_athena_sink_opens_again_by_its_own_uri_and_asks_nothing() -> None:
    uri = "athena://golden?output=s3://bucket/a/b&workgroup=team&region=eu-west-1"
    assert open_sink(uri).uri == open_sink(open_sink(uri).uri).uri == uri
    with pytest.raises(UsageError, match=r"AthenaClients\(athena, glue, s3\)"):
        open_sink(uri, client=object())
