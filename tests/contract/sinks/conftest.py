"""The sinks that the contract suite runs on. A new one is one more class in PLACES."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from athena_server import AthenaServer
from warehouse_servers import BigQueryServer

from docgen_core.blobs.contract import BlobStore
from docgen_core.blobs.file import FileBlobStore
from docgen_core.export import GoldenSink, open_sink


class Place(ABC):
    """A sink, and an outsider's look at what it holds."""

    uri: str
    repeated = 4
    """How often an export is repeated where the number decides nothing."""

    def open(self) -> GoldenSink:
        return open_sink(self.uri)

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Everybody's rows, by run and document."""
        found = self.read(table).to_pylist()
        return sorted(found, key=lambda row: (row["run_id"], row["document_id"]))

    @abstractmethod
    def read(self, table: str) -> pa.Table:
        """The table with the types that a reader meets."""

    def met(self, schema: pa.Schema) -> list[pa.DataType]:
        """The declared types as a reader of the place meets them."""
        return list(schema.types)

    @abstractmethod
    def block(self) -> str:
        """Make the place one that cannot be written; returns what its error names."""

    @abstractmethod
    def tables(self) -> set[str]:
        """Tables there are."""


class ParquetPlace(Place):
    def __init__(self, folder: Path) -> None:
        self.folder = folder / "tables"
        self.uri = f"parquet://{self.folder}"

    def read(self, table: str) -> pa.Table:
        files = sorted((self.folder / table).rglob("*.parquet"))
        return pa.concat_tables(pq.read_table(file, partitioning=None) for file in files)

    def block(self) -> str:
        self.folder.mkdir()
        (self.folder / ".tmp").write_text("a file where a folder belongs")
        return str(self.folder)

    def tables(self) -> set[str]:
        return {path.relative_to(self.folder).parts[0] for path in self.folder.rglob("*.parquet")}


class DuckDBPlace(Place):
    def __init__(self, folder: Path) -> None:
        self.file = folder / "golden.duckdb"
        self.uri = f"duckdb://{self.file}?wait_seconds=0.2"

    def read(self, table: str) -> pa.Table:
        with duckdb.connect(str(self.file), read_only=True) as connection:
            return connection.sql(f"SELECT * FROM {table}").to_arrow_table()

    def block(self) -> str:
        self.file.with_name(f"{self.file.name}.lock").mkdir()
        return str(self.file)

    def tables(self) -> set[str]:
        if not self.file.exists():
            return set()
        with duckdb.connect(str(self.file), read_only=True) as connection:
            found = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        return {name for (name,) in found} - {"docgen_exports"}


class BigQueryPlace(Place):
    """A dataset of its own on the session's server."""

    repeated = 2

    def __init__(self, server: BigQueryServer) -> None:
        self.server, self.dataset, self.client = server, server.new_dataset(), server.client()
        staging = f"gs://{server.storage.bucket}/{self.dataset}"
        self.uri = f"bigquery://{server.project}/{self.dataset}?staging={staging}"

    def read(self, table: str) -> pa.Table:
        found = self.client.query(f"SELECT * FROM `{self.dataset}.{table}`")
        return found.result().to_arrow(create_bqstorage_client=False)

    def met(self, schema: pa.Schema) -> list[pa.DataType]:
        """There is one type of integers."""
        return [pa.int64() if kind == pa.int32() else kind for kind in schema.types]

    def block(self) -> str:
        # A view stands where a table belongs.
        self.client.query(f"CREATE VIEW `{self.dataset}.orders` AS SELECT 1 AS one").result()
        return self.dataset

    def tables(self) -> set[str]:
        found = {table.table_id for table in self.client.list_tables(self.dataset) if table.table_type == "TABLE"}
        return {name for name in found if not name.startswith("docgen_")}


class AthenaPlace(Place):
    """A database of its own on the session's server, asked by plain queries of the clients."""

    repeated = 2
    types: Mapping[str, tuple[pa.DataType, Callable[[str], Any]]] = {
        "string": (pa.string(), str),
        "int": (pa.int32(), int),
        "bigint": (pa.int64(), int),
        "double": (pa.float64(), float),
        "date": (pa.date32(), date.fromisoformat),
        "boolean": (pa.bool_(), "true".__eq__),
        "decimal(38,9)": (pa.decimal128(38, 9), Decimal),
    }

    def __init__(self, server: AthenaServer) -> None:
        self.server, self.database, self.clients = server, server.new_database(), server.clients
        self.uri = server.uri(self.database)

    def open(self) -> GoldenSink:
        return open_sink(self.uri, self.clients)

    def ask(self, sql: str) -> list[list[str | None]]:
        return self.server.ask(self.database, sql)

    def read(self, table: str) -> pa.Table:
        names, *rows = self.ask(f'SELECT * FROM "{table}"')
        found = self.clients.glue.get_table(DatabaseName=self.database, Name=f"{table}_files")["Table"]
        kinds = {column["Name"]: self.types[column["Type"]] for column in found["StorageDescriptor"]["Columns"]}
        schema = pa.schema([(name, kinds[name][0]) for name in names if name])
        return pa.Table.from_pylist(
            [
                {name: text if text is None else kinds[name][1](text) for name, text in zip(names, row, strict=True)}
                for row in rows
            ],
            schema,
        )

    def block(self) -> str:
        # Somebody's table stands where a view belongs.
        self.clients.glue.create_table(DatabaseName=self.database, TableInput={"Name": "orders"})
        return self.database

    def tables(self) -> set[str]:
        found = self.clients.glue.get_tables(DatabaseName=self.database)["TableList"]
        return {table["Name"] for table in found if table["TableType"] == "VIRTUAL_VIEW"}


PLACES: dict[str, type[ParquetPlace] | type[DuckDBPlace]] = {"parquet": ParquetPlace, "duckdb": DuckDBPlace}


@pytest.fixture(params=[*PLACES, "bigquery", "athena"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param not in PLACES:
        return request.getfixturevalue(f"{request.param}_place")
    return PLACES[request.param](tmp_path)


@pytest.fixture
def bigquery_place(bigquery_local: BigQueryServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[BigQueryPlace]:
    for name, text in bigquery_local.environment.items():
        monkeypatch.setenv(name, text)
    place = BigQueryPlace(bigquery_local)
    yield place
    bigquery_local.forget(place.dataset)


@pytest.fixture
def athena_place(athena_ministack: AthenaServer, monkeypatch: pytest.MonkeyPatch) -> AthenaPlace:
    for name, text in athena_ministack.environment.items():
        monkeypatch.setenv(name, text)
    return AthenaPlace(athena_ministack)


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return FileBlobStore(tmp_path / "blobs")
