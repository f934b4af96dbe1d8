"""What BigQuery is told, and what becomes of an export that BigQuery, the network or a signal interrupts."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from blob_servers import gcs_client
from export_processes import EXPORT, end, start
from fabricated_run import ORDERS, keys, orders_and_notes, seal
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery
from interposer import Answer, Interposer, Lost, interposed
from standins import free_ports

from docgen_core import golden
from docgen_core.blobs.contract import BlobStore
from docgen_core.errors import DocgenError, StorageFailed, UsageError
from docgen_core.export import export_run, open_sink
from docgen_core.export.bigquery import STAGED, STAGED_HOURS, BigQueryClients, BigQuerySink
from docgen_core.golden import FIELD_BOXES
from docgen_core.runs.catalogue import build_catalogue_run
from docgen_core.runs.drain import work_run
from docgen_core.runs.selection import CatalogueSpec
from docgen_core.runs.shards import encode_shard
from docgen_core.state import open_state

if TYPE_CHECKING:
    from conftest import BigQueryPlace


MADE_BY = {"made_by": "docgen"}


def export(run_id: str, blobs: BlobStore, place: BigQueryPlace) -> None:
    with closing(place.open()) as sink:
        export_run(run_id, blobs=blobs, sink=sink)


def ask(place: BigQueryPlace, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in place.client.query(sql.format(d=place.dataset)).result()]


def test_jobs_and_tables_carry_the_declared_columns(bigquery_place: BigQueryPlace, blobs: BlobStore) -> None:
    seal(blobs, "r1", orders_and_notes("r1"))
    export("r1", blobs, bigquery_place)
    declared = [(field.name, field.metadata[b"description"].decode()) for field in ORDERS]
    modes = ["NULLABLE" if field.nullable else "REQUIRED" for field in ORDERS]
    types = ["STRING"] * 5 + ["DATE", "NUMERIC", "INTEGER"]
    loads = [job for job in bigquery_place.client.list_jobs() if job.job_type == "load"]
    (load,) = [job for job in loads if (job.destination.dataset_id, job.labels) == (bigquery_place.dataset, MADE_BY)]
    assert load.destination.table_id.startswith("docgen_staging_")
    table = bigquery_place.client.get_table(f"{bigquery_place.dataset}.orders")
    for schema in (load.schema, table.schema):
        assert [(column.name, column.description) for column in schema] == declared
        assert [column.field_type for column in schema] == types
        assert [column.mode for column in schema] == modes
    assert (load.source_format, load.autodetect, len(load.source_uris)) == ("PARQUET", None, 2)
    assert (table.clustering_fields, table.labels) == (["run_id"], MADE_BY)
    assert ask(bigquery_place, "SELECT run_id, table_name, row_count FROM {d}.docgen_exports ORDER BY 2") == [
        ("r1", "notes", 0),
        ("r1", "orders", 2),
    ]


def test_sums_by_sql_are_exact_and_rows_are_those_of_duckdb(
    bigquery_place: BigQueryPlace, blobs: BlobStore, tmp_path: Path
) -> None:
    rate = Decimal("99999999999999999999999999.123456789")
    rows = [
        {**keys("r1", place), "po_number": "Ü–日", "due": None, "rate": rate, "copies": place} for place in range(99)
    ]
    boxes = {f"{axis}{corner}": 0.1 + corner for corner in range(4) for axis in ("x", "y")}
    box = {**keys("r1", 0), "table_name": "orders", "column_name": "rate", "text": "1", "value": "1.1", **boxes}
    parts = [{**box, "occurrence": place // 2, "part": place % 2, "page": 3 - place} for place in range(3)]
    shards = {
        "orders": [encode_shard("orders", ORDERS, rows)],
        "field_boxes": [encode_shard("field_boxes", FIELD_BOXES, parts)],
    }
    seal(blobs, "r1", shards)
    export("r1", blobs, bigquery_place)
    assert ask(bigquery_place, "SELECT SUM(rate), COUNT(*) FROM {d}.orders") == [
        (Decimal("9899999999999999999999999913.222222111"), 99)
    ]
    values = "SELECT table_name, column_name, value, occurrences, first_page FROM {d}.golden_values"
    assert ask(bigquery_place, values) == [("orders", "rate", "1.1", 2, 1)]
    same_rows_in_duckdb("r1", blobs, bigquery_place, tmp_path)


def test_a_generated_catalogue_has_the_rows_of_duckdb_and_the_sums_of_its_shards(
    bigquery_place: BigQueryPlace, blobs: BlobStore, tmp_path: Path
) -> None:
    state = open_state(str(tmp_path / "state.db"))
    build_catalogue_run(state, blobs, "v1", CatalogueSpec(companies=4, products=3, range_width=2))
    work_run("catalogue-v1", state=state, blobs=blobs, worker="w")
    export("catalogue-v1", blobs, bigquery_place)
    same_rows_in_duckdb("catalogue-v1", blobs, bigquery_place, tmp_path)
    run = golden.open("catalogue-v1", blobs)
    summed = 0
    for name in run.tables:
        table = run.table(name).to_arrow()
        for field in table.schema:
            if pa.types.is_decimal(field.type):
                ((total,),) = ask(bigquery_place, f"SELECT SUM({field.name}) FROM {{d}}.{name}")
                assert total == pc.sum(table[field.name]).as_py()
                summed += 1
    assert summed


def same_rows_in_duckdb(run_id: str, blobs: BlobStore, place: BigQueryPlace, folder: Path) -> None:
    with closing(open_sink(str(folder / "same.duckdb"))) as duckdb, closing(place.open()) as sink:
        rows = export_run(run_id, blobs=blobs, sink=duckdb).rows
        assert sink.counts(run_id) == duckdb.counts(run_id) == rows
        for table in rows:
            ours, theirs = (pa.Table.from_batches(one.fetch(table, run_id)) for one in (sink, duckdb))
            assert ours.schema.types == theirs.schema.types
            assert sorted(map(repr, ours.to_pylist())) == sorted(map(repr, theirs.to_pylist()))


def test_no_reader_of_two_tables_sees_half_or_double(bigquery_place: BigQueryPlace, blobs: BlobStore) -> None:
    for run_id in ("r1", "r2"):
        orders = orders_and_notes(run_id, units=3)["orders"]
        seal(blobs, run_id, {"orders": orders, "more_orders": orders})
    export("r1", blobs, bigquery_place)
    exports = [start(EXPORT, blobs.uri, bigquery_place.uri, run_id, "2") for run_id in ("r1", "r2")]
    joined = (
        "SELECT run_id, COUNT(*) FROM {d}.orders JOIN {d}.more_orders USING (run_id, document_id) GROUP BY 1 "
        "UNION ALL SELECT run_id, COUNT(*) FROM {d}.orders GROUP BY 1"
    )
    seen = set()
    while any(process.poll() is None for process in exports):
        seen.add(tuple(sorted(ask(bigquery_place, joined))))
    assert [end(process) for process in exports] == [(0, "")] * 2
    whole = tuple((run_id, 3) for run_id in ("r1", "r1", "r2", "r2"))
    assert whole[:2] in seen
    assert seen <= {whole[:2], whole}
    assert tuple(sorted(ask(bigquery_place, joined))) == whole


DIE = """
import os, signal, sys
from docgen_core.blobs import open_blobs
from docgen_core.export import export_run, open_sink

def dying(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

blobs, uri, run_id, step = sys.argv[1:]
sink = open_sink(uri)
setattr(sink, step, dying)
export_run(run_id, blobs=open_blobs(blobs), sink=sink)
"""


@pytest.mark.parametrize(
    ("step", "rows"),
    [("_loading", 1), ("_make", 1), ("_replace", 1), ("abort", 3)],
    ids=["staged", "loaded", "tables are there", "published"],
)
def test_killed_between_its_steps_and_exported_again(
    bigquery_place: BigQueryPlace, blobs: BlobStore, step: str, rows: int
) -> None:
    seal(blobs, "r1", orders_and_notes("r1", units=1))
    export("r1", blobs, bigquery_place)
    seal(blobs, "r1", orders_and_notes("r1", units=3))
    assert end(start(DIE, blobs.uri, bigquery_place.uri, "r1", step))[0] == -signal.SIGKILL
    assert len(bigquery_place.rows("orders")) == rows
    expiring = [
        bigquery_place.client.get_table(table).expires
        for table in bigquery_place.client.list_tables(bigquery_place.dataset)
        if table.table_id.startswith("docgen_staging_")
    ]
    assert len(expiring) == (step != "_loading")
    assert all(
        expires and expires < datetime.now(UTC) + timedelta(hours=STAGED_HOURS, minutes=1) for expires in expiring
    )
    assert len(staged(bigquery_place)) == 3
    # One at the same moment leaves alone what may be a live peer's; one a day later does not.
    for hours, left in ((0, 3), (STAGED_HOURS + 1, 0)):
        with closing(sink_at(bigquery_place, hours)) as sink:
            export_run("r1", blobs=blobs, sink=sink)
        assert len(staged(bigquery_place)) == left
    assert len(bigquery_place.rows("orders")) == 3


def staged(place: BigQueryPlace) -> list[str]:
    storage = place.server.storage
    prefix = f"{place.dataset}/{STAGED}/"
    return [blob.name for blob in gcs_client(storage.port).list_blobs(storage.bucket, prefix=prefix)]


def sink_at(place: BigQueryPlace, hours: int = 0, **more: Any) -> BigQuerySink:
    """The place's sink, at so many hours from now."""
    staging = f"gs://{place.server.storage.bucket}/{place.dataset}"
    now = datetime.now(UTC) + timedelta(hours=hours)
    return BigQuerySink(place.server.project, place.dataset, staging=staging, now=lambda: now, **more)


@pytest.fixture
def between(bigquery_place: BigQueryPlace) -> Iterator[Interposer]:
    with interposed(bigquery_place.server.port) as server:
        yield server


def through(between: Interposer, place: BigQueryPlace, **more: Any) -> BigQuerySink:
    """The place's sink with a client of the caller's that goes through the interposer."""
    client = bigquery.Client(
        project=place.server.project,
        credentials=AnonymousCredentials(),
        client_options={"api_endpoint": f"http://127.0.0.1:{between.port}"},
    )
    return sink_at(place, clients=BigQueryClients(bigquery=client), **more)


def refusal(status: int, reason: str, message: str) -> Answer:
    """BigQuery's own form of an error."""
    detail = {"message": message, "domain": "global", "reason": reason}
    body = {"error": {"code": status, "message": message, "errors": [detail]}}
    return Answer(status, json.dumps(body).encode(), {"Content-Type": "application/json"})


ABORTED = refusal(
    400,
    "invalidQuery",
    "Transaction is aborted due to concurrent update against table p:d.orders. Transaction ID: 61e3",
)
SERIALIZED = refusal(400, "invalidQuery", "Could not serialize access to table p:d.orders due to concurrent update")
BEFORE_THE_TRANSACTION = (None, None, None)
"""Of the POSTs of a repeated export: the staging table, the load, the question what is held."""


def test_a_transaction_that_met_another_is_run_again(
    bigquery_place: BigQueryPlace, blobs: BlobStore, between: Interposer
) -> None:
    seal(blobs, "r1", orders_and_notes("r1", units=1))
    export("r1", blobs, bigquery_place)
    seal(blobs, "r1", orders_and_notes("r1", units=3))
    between.next("POST", *BEFORE_THE_TRANSACTION, ABORTED, None, SERIALIZED)
    with closing(through(between, bigquery_place)) as sink:
        export_run("r1", blobs=blobs, sink=sink)
    assert len(bigquery_place.rows("orders")) == 3
    between.next("POST", *BEFORE_THE_TRANSACTION, ABORTED)
    with (
        closing(through(between, bigquery_place, peer_wait_seconds=0)) as sink,
        pytest.raises(StorageFailed, match="other exports changed the same tables all the time"),
    ):
        export_run("r1", blobs=blobs, sink=sink)
    assert staged(bigquery_place) == []
    assert len(bigquery_place.rows("orders")) == 3


def test_a_load_whose_answer_was_lost_is_done_once(
    bigquery_place: BigQueryPlace, blobs: BlobStore, between: Interposer
) -> None:
    seal(blobs, "r1", orders_and_notes("r1", units=3))
    between.next("POST", None, Lost())
    with closing(through(between, bigquery_place)) as sink:
        export_run("r1", blobs=blobs, sink=sink)
    assert len(bigquery_place.rows("orders")) == 3


@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        (
            refusal(403, "quotaExceeded", "Quota exceeded: load jobs per project"),
            StorageFailed,
            "a quota of BigQuery's",
        ),
        (refusal(403, "accessDenied", "Access Denied: bigquery.tables.create"), StorageFailed, "docs/permissions.md"),
        (refusal(403, "billingNotEnabled", "Billing has not been enabled"), StorageFailed, "link a billing account"),
        (refusal(401, "authError", "Request had invalid authentication credentials."), UsageError, "log in"),
        (
            refusal(400, "invalid", "Cannot read and write in different locations: source: US, destination: EU"),
            UsageError,
            "the staging bucket must be in the dataset's location",
        ),
    ],
)
def test_what_bigquery_refuses_is_one_line(
    bigquery_place: BigQueryPlace,
    blobs: BlobStore,
    between: Interposer,
    fault: Answer,
    kind: type[DocgenError],
    said: str,
) -> None:
    seal(blobs, "r1", orders_and_notes("r1", units=1))
    between.next("POST", fault)
    with closing(through(between, bigquery_place)) as sink, pytest.raises(kind) as caught:
        export_run("r1", blobs=blobs, sink=sink)
    assert said in str(caught.value)
    assert bigquery_place.dataset in str(caught.value)
    assert "\n" not in str(caught.value)
    assert (bigquery_place.tables(), staged(bigquery_place)) == (set(), [])


def test_wrong_names_are_one_line(bigquery_place: BigQueryPlace, blobs: BlobStore) -> None:
    seal(blobs, "r1", orders_and_notes("r1", units=1))
    uri = bigquery_place.uri
    for wrong, said in (
        (uri.replace(f"/{bigquery_place.dataset}?", "/nothing_here?"), "there is no such dataset; make it"),
        (uri.replace("staging=gs://docgen-test/", "staging=gs://no-such-bucket/"), "no-such-bucket"),
        (f"{uri}&location=mars", "not in mars"),
    ):
        with closing(open_sink(wrong)) as sink, pytest.raises(DocgenError) as caught:
            export_run("r1", blobs=blobs, sink=sink)
        assert said in str(caught.value)
        assert "\n" not in str(caught.value)
    assert bigquery_place.tables() == set()


def test_nothing_is_asked_before_the_first_use_and_then_credentials_are_missed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("BIGQUERY_EMULATOR_HOST", raising=False)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    with (
        closing(open_sink("bigquery://docgen-test/d?staging=gs://docgen-test/x")) as sink,
        pytest.raises(UsageError, match="log in"),
    ):
        sink.counts("r1")


def test_a_server_out_of_reach_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", f"http://127.0.0.1:{free_ports(1)[0]}")
    sink = BigQuerySink("docgen-test", "d", staging="gs://docgen-test/x", patience_seconds=0.1)
    with closing(sink), pytest.raises(StorageFailed, match="out of reach"):
        sink.counts("r1")


def test_rows_of_other_columns_are_not_mixed_in(bigquery_place: BigQueryPlace, blobs: BlobStore) -> None:
    seal(blobs, "r1", orders_and_notes("r1", units=1))
    export("r1", blobs, bigquery_place)
    fewer = pa.schema([field for field in ORDERS if field.name != "copies"])
    row = {**keys("r2", 0), "po_number": None, "due": None, "rate": Decimal(1)}
    seal(blobs, "r2", {"orders": [encode_shard("orders", fewer, [row])]})
    with pytest.raises(UsageError, match=r"'orders' holds rows of other columns \(copies\)"):
        export("r2", blobs, bigquery_place)
    with closing(bigquery_place.open()) as sink:
        sink.remove("r1")
    export("r2", blobs, bigquery_place)
    assert [row["run_id"] for row in bigquery_place.rows("orders")] == ["r2"]
