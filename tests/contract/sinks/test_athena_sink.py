"""What Glue and Athena are told, and what becomes of an export that AWS, the network or a signal interrupts."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from blob_servers import BUCKET, KEY_ID, REGION, SECRET
from botocore.config import Config
from export_processes import EXPORT, end, start
from fabricated_run import ORDERS, keys, orders_and_notes, seal
from interposer import Answer, Interposer, Lost, interposed
from standins import free_ports

from docgen_core import golden
from docgen_core.blobs import open_blobs
from docgen_core.blobs.contract import BlobStore
from docgen_core.blobs.file import FileBlobStore
from docgen_core.errors import DocgenError, StorageFailed, UsageError
from docgen_core.export import athena_sql, export_run, open_sink
from docgen_core.export.athena import KEEP_SECONDS, LONGEST_SECONDS, AthenaClients, AthenaSink
from docgen_core.golden import FIELD_BOXES
from docgen_core.runs.catalogue import build_catalogue_run
from docgen_core.runs.drain import work_run
from docgen_core.runs.selection import CatalogueSpec
from docgen_core.runs.shards import encode_shard
from docgen_core.state import open_state

if TYPE_CHECKING:
    from conftest import AthenaPlace


def export(run_id: str, blobs: BlobStore, place: AthenaPlace) -> None:
    with closing(place.open()) as sink:
        export_run(run_id, blobs=blobs, sink=sink)


def glue_table(place: AthenaPlace, name: str) -> dict[str, Any]:
    return place.clients.glue.get_table(DatabaseName=place.database, Name=name)["Table"]


def objects(place: AthenaPlace, folder: str) -> list[str]:
    with closing(open_blobs(f"s3://{BUCKET}/{place.database}", place.clients.s3)) as blobs:
        return [info.key for info in blobs.iter_keys(folder)]


def sink_at(place: AthenaPlace, seconds: float = 0, clients: AthenaClients | None = None) -> AthenaSink:
    """The place's sink, at so many seconds from now."""
    output = f"s3://{BUCKET}/{place.database}"
    return AthenaSink(
        place.database, output=output, clients=clients or place.clients, now=lambda: time.time() + seconds
    )


def test_glue_has_the_declared_columns_and_projects_the_exports(athena_place: AthenaPlace, blobs: BlobStore) -> None:
    shards = orders_and_notes("r1", units=2)
    seal(blobs, "r1", shards)
    export("r1", blobs, athena_place)
    table, place = glue_table(athena_place, "orders_files"), f"s3://{BUCKET}/{athena_place.database}"
    columns = [(column["Name"], column["Comment"]) for column in table["StorageDescriptor"]["Columns"]]
    assert columns == [(field.name, field.metadata[b"description"].decode()) for field in ORDERS]
    assert glue_table(athena_place, "orders")["StorageDescriptor"]["Columns"] == table["StorageDescriptor"]["Columns"]
    types = [column["Type"] for column in table["StorageDescriptor"]["Columns"]]
    assert types == ["string"] * 5 + ["date", "decimal(38,9)", "int"]
    assert table["StorageDescriptor"]["SerdeInfo"]["SerializationLibrary"].endswith(".ParquetHiveSerDe")
    (_, _, (name, root_sha256, held)) = athena_place.ask(
        'SELECT export, root_sha256, row_count FROM "docgen_exports" ORDER BY table_name'
    )
    assert (len(root_sha256 or ""), held) == (64, "2")
    projected = {key: text for key, text in table["Parameters"].items() if key.startswith(("projection", "storage"))}
    assert projected == {
        "projection.enabled": "true",
        "projection.export.type": "enum",
        "projection.export.values": name,
        "storage.location.template": f"{place}/tables/orders/export=${{export}}/",
    }
    assert [key["Name"] for key in table["PartitionKeys"]] == ["export"]
    files = objects(athena_place, "tables/orders/")
    assert files == [f"tables/orders/export={name}/unit-{unit:06d}.parquet" for unit in range(2)]
    with closing(open_blobs(place, athena_place.clients.s3)) as bucket:
        assert [bucket.get(key) for key in files] == list(shards["orders"])


def test_statements_are_plain_sql_of_names_in_double_quotes() -> None:
    assert athena_sql.view("orders", ["run_id", "key"]) == (
        'CREATE OR REPLACE VIEW "orders" AS SELECT f."run_id", f."key" FROM "docgen_exports" e JOIN "orders_files" f '
        'ON f."export" = e."export" AND f."run_id" = e."run_id" WHERE e."table_name" = \'orders\''
    )
    assert athena_sql.rows("orders", ["run_id", "key"], "r1", 5) == (
        'SELECT "run_id", "key" FROM "orders" WHERE "run_id" = \'r1\' ORDER BY "run_id", "key" LIMIT 5'
    )
    assert athena_sql.VALUES_SQL.count("`") == 0


@pytest.mark.parametrize(
    ("table", "field", "said"),
    [
        ("orders", golden.column("x", pa.decimal256(40, 2), "Too wide."), "orders.x"),
        ("orders", golden.column("x", pa.list_(pa.string()), "Not flat."), "orders.x"),
        ("orders", golden.column("export", pa.string(), "Taken."), "orders.export"),
        ("docgen_exports", golden.column("x", pa.string(), "Taken."), "docgen_exports"),
        ("orders_files", golden.column("x", pa.string(), "Taken."), "orders_files"),
    ],
)
def test_what_has_no_place_in_athena_is_refused(table: str, field: pa.Field, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        athena_sql.columns(table, pa.schema([field]))


def test_a_description_too_long_for_glue_is_cut() -> None:
    (column,) = athena_sql.columns("orders", pa.schema([golden.column("x", pa.string(), "word " * 100)]))
    assert (len(column["Comment"]) <= 255, column["Comment"][-1]) == (True, "…")


def test_a_generated_catalogue_has_the_rows_of_duckdb_and_the_sums_of_its_shards(
    athena_place: AthenaPlace, blobs: BlobStore, tmp_path: Path
) -> None:
    state = open_state(str(tmp_path / "state.db"))
    build_catalogue_run(state, blobs, "v1", CatalogueSpec(companies=4, products=3, range_width=2))
    work_run("catalogue-v1", state=state, blobs=blobs, worker="w")
    with closing(open_sink(str(tmp_path / "same.duckdb"))) as duckdb, closing(athena_place.open()) as sink:
        rows = export_run("catalogue-v1", blobs=blobs, sink=duckdb).rows
        assert export_run("catalogue-v1", blobs=blobs, sink=sink).rows == rows
        assert sink.counts("catalogue-v1") == duckdb.counts("catalogue-v1") == rows
        for table in rows:
            ours, theirs = (pa.Table.from_batches(one.fetch(table, "catalogue-v1")) for one in (sink, duckdb))
            assert ours.schema.types == theirs.schema.types
            assert sorted(map(repr, ours.to_pylist())) == sorted(map(repr, theirs.to_pylist()))
    sums = []
    run = golden.open("catalogue-v1", blobs)
    for name in run.tables:
        table = run.table(name).to_arrow()
        decimals = [field.name for field in table.schema if pa.types.is_decimal(field.type)]
        if decimals:
            (_, found) = athena_place.ask(f'SELECT {", ".join(f"sum({column})" for column in decimals)} FROM "{name}"')
            assert [text and Decimal(text) for text in found] == [pc.sum(table[column]).as_py() for column in decimals]
            sums += found
    assert sums
    assert objects(athena_place, "results/") == []


def test_texts_come_back_as_they_are(athena_place: AthenaPlace, blobs: BlobStore) -> None:
    texts = ["", None, 'say "so"', "two\nlines", "a,b", " ", "NULL", "請求書"]
    rows = [
        {**keys("r1", number), "po_number": text, "due": None, "rate": Decimal("-0.000000001"), "copies": None}
        for number, text in enumerate(texts)
    ]
    seal(blobs, "r1", {"orders": [encode_shard("orders", ORDERS, rows)]})
    export("r1", blobs, athena_place)
    with closing(athena_place.open()) as sink:
        found = pa.Table.from_batches(sink.fetch("orders", "r1", limit=100))
        leaving = sink.fetch("orders", "r1")
        next(leaving)
        leaving.close()
    assert found["po_number"].to_pylist() == texts
    assert objects(athena_place, "results/") == []


def test_each_printed_value_is_found_once(athena_place: AthenaPlace, blobs: BlobStore) -> None:
    corners = {f"{axis}{corner}": 1.5 for axis in "xy" for corner in range(4)}
    named = {"table_name": "invoices", "column_name": "total", "value": "3", "text": "3"}
    boxes = [
        {**keys("r1", 0), **named, **corners, "occurrence": occurrence, "part": part, "page": occurrence + 1}
        for occurrence in range(2)
        for part in range(2)
    ]
    seal(blobs, "r1", {"field_boxes": [encode_shard("field_boxes", FIELD_BOXES, boxes)]})
    for _ in range(2):
        export("r1", blobs, athena_place)
    found = athena_place.ask('SELECT column_name, "value", occurrences, first_page FROM golden_values')
    assert found[1:] == [["total", "3", "2", "1"]]


def test_no_reader_of_two_tables_sees_half_or_double(
    athena_place: AthenaPlace, blobs: BlobStore, tmp_path: Path
) -> None:
    smaller = FileBlobStore(tmp_path / "smaller")
    for place, units in ((blobs, 3), (smaller, 1)):
        orders = orders_and_notes("r1", units=units)["orders"]
        seal(place, "r1", {"orders": orders, "more_orders": orders})
    seal(blobs, "r2", orders_and_notes("r2", units=2))
    export("r2", blobs, athena_place)
    export("r1", smaller, athena_place)
    counted = (
        "SELECT (SELECT count(*) FROM orders WHERE run_id = 'r1'), (SELECT count(*) FROM more_orders), "
        "(SELECT count(*) FROM orders JOIN more_orders USING (run_id, document_id)), "
        "(SELECT count(*) FROM orders WHERE run_id = 'r2')"
    )
    exports = [
        start(EXPORT, place.uri, athena_place.uri, run_id, "2") for place, run_id in ((blobs, "r1"), (smaller, "r1"))
    ]
    seen = set()
    while any(process.poll() is None for process in exports):
        seen.add(tuple(athena_place.ask(counted)[1]))
    assert [end(process) for process in exports] == [(0, "")] * 2
    assert seen <= {("1", "1", "1", "2"), ("3", "3", "3", "2")}
    assert ("1", "1", "1", "2") in seen


def test_whoever_is_faster_loses_nothing(
    athena_place: AthenaPlace, blobs: BlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run_id in ("r1", "r2"):
        seal(blobs, run_id, {"orders": orders_and_notes(run_id, units=2)["orders"]})
    faster = iter(["r2"])

    def overtaken(replacement: object) -> None:
        for run_id in faster:
            export(run_id, blobs, athena_place)

    with closing(sink_at(athena_place)) as sink:
        # Asked when the books that go before were read, just before the switch.
        monkeypatch.setattr(sink, "_refuse_unfit", overtaken)
        export_run("r1", blobs=blobs, sink=sink)
    assert [row["run_id"] for row in athena_place.rows("orders")] == ["r1"] * 2 + ["r2"] * 2


DIE = """
import os, signal, sys
from docgen_core.blobs import open_blobs
from docgen_core.export import export_run, open_sink

def dying(*arguments, **more):
    os.kill(os.getpid(), signal.SIGKILL)

blobs, uri, run_id, part, step = sys.argv[1:]
sink = open_sink(uri)
setattr(getattr(sink, part) if part else sink, step, dying)
export_run(run_id, blobs=open_blobs(blobs), sink=sink)
"""


@pytest.mark.parametrize(
    ("part", "step", "rows"),
    [("_catalogue", "announce", 1), ("", "_refuse_unfit", 1), ("", "_collect", 3)],
    ids=["files are there", "tables and books are there", "published"],
)
def test_killed_between_its_steps_and_exported_again(
    athena_place: AthenaPlace, blobs: BlobStore, part: str, step: str, rows: int
) -> None:
    seal(blobs, "r1", orders_and_notes("r1", units=1))
    export("r1", blobs, athena_place)
    seal(blobs, "r1", orders_and_notes("r1", units=3))
    assert end(start(DIE, blobs.uri, athena_place.uri, "r1", part, step))[0] == -signal.SIGKILL
    assert len(athena_place.rows("orders")) == rows
    assert len(objects(athena_place, "tables/orders/")) == 4
    # One at the same moment leaves alone what may be a live peer's, or read; one a day later does not.
    for seconds, files in ((0, 7), (KEEP_SECONDS + 10, 6)):
        with closing(sink_at(athena_place, seconds)) as sink:
            export_run("r1", blobs=blobs, sink=sink)
        assert len(objects(athena_place, "tables/orders/")) == files
        assert len(athena_place.rows("orders")) == 3
    assert len(glue_table(athena_place, "orders_files")["Parameters"]["projection.export.values"].split(",")) == 2
    with closing(sink_at(athena_place, 3 * KEEP_SECONDS)) as sink:
        sink.remove("r1")
        assert sink.counts("r1") == {}
    with closing(sink_at(athena_place, 5 * KEEP_SECONDS)) as sink:
        sink.remove("r1")
    assert (objects(athena_place, "tables/"), objects(athena_place, "pending/")) == ([], [])
    assert glue_table(athena_place, "orders_files")["Parameters"]["projection.export.values"] == "none"
    assert athena_place.rows("orders") == []
    assert len(objects(athena_place, "exports/")) == 1


def test_an_export_that_took_too_long_publishes_nothing(athena_place: AthenaPlace, blobs: BlobStore) -> None:
    seal(blobs, "r1", orders_and_notes("r1", units=1))
    clock = iter([0.0])
    sink = AthenaSink(
        athena_place.database, output=f"s3://{BUCKET}/{athena_place.database}", clients=athena_place.clients,
        now=lambda: next(clock, LONGEST_SECONDS + 1),
    )  # fmt: skip
    with closing(sink), pytest.raises(StorageFailed, match="took more than 12 hours"):
        export_run("r1", blobs=blobs, sink=sink)
    assert athena_place.rows("orders") == []


@pytest.fixture
def between(athena_place: AthenaPlace) -> Iterator[Interposer]:
    with interposed(athena_place.server.port) as server:
        yield server


def through(between: Interposer, place: AthenaPlace, service: str, tries: int = 3) -> AthenaSink:
    """The place's sink with one of its clients going through the interposer."""
    client = boto3.session.Session().client(
        service, endpoint_url=f"http://127.0.0.1:{between.port}", region_name=REGION,
        aws_access_key_id=KEY_ID, aws_secret_access_key=SECRET,
        config=Config(retries={"mode": "standard", "total_max_attempts": tries}),
    )  # fmt: skip
    return sink_at(place, clients=place.clients._replace(**{service: client}))


def refusal(code: str, message: str, status: int = 400) -> Answer:
    """AWS's own form of an error."""
    body = json.dumps({"__type": code, "message": message, "Message": message})
    return Answer(status, body.encode(), {"Content-Type": "application/x-amz-json-1.1"})


def test_throttling_lost_answers_and_somebody_faster_are_gone_through(
    athena_place: AthenaPlace, blobs: BlobStore, between: Interposer
) -> None:
    seal(blobs, "r1", {"orders": orders_and_notes("r1", units=3)["orders"]})
    export("r1", blobs, athena_place)
    throttled = refusal("ThrottlingException", "Rate exceeded")
    changed = refusal("ConcurrentModificationException", "Table was modified")
    # The database, the files' table and the view; then the books, the files' table and its change, and
    # the view and the boxes are looked for; then the books and the switch.
    met = [throttled, None, None, Lost(), None, None, None, changed, None, None, None, None, None, changed]
    between.next("POST", *met)
    with closing(through(between, athena_place, "glue")) as sink:
        export_run("r1", blobs=blobs, sink=sink)
    assert between.count("POST") == len(met) + 3
    between.forget()
    between.next("POST", refusal("TooManyRequestsException", "Rate exceeded"), Lost())
    with closing(through(between, athena_place, "athena")) as sink:
        assert sink.counts("r1") == {"orders": 3}
    assert len(athena_place.rows("orders")) == 3


@pytest.mark.parametrize("lost", (5, 8, 11))
def test_an_answer_of_glue_lost_anywhere_changes_nothing(
    athena_place: AthenaPlace, blobs: BlobStore, between: Interposer, lost: int
) -> None:
    seal(blobs, "r1", {"orders": orders_and_notes("r1", units=1)["orders"]})
    between.next("POST", *[None] * lost, Lost())
    with closing(through(between, athena_place, "glue")) as sink:
        export_run("r1", blobs=blobs, sink=sink)
    assert len(athena_place.rows("orders")) == 1


@pytest.mark.parametrize(
    ("service", "fault", "kind", "said"),
    [
        ("glue", refusal("AccessDeniedException", "User is not authorized"), StorageFailed, "docs/permissions.md"),
        ("glue", refusal("UnrecognizedClientException", "The security token is invalid"), UsageError, "log in again"),
        ("glue", refusal("ResourceNumberLimitExceededException", "Too many"), StorageFailed, "a quota of Glue"),
        ("glue", refusal("InternalServiceException", "Oops", 500), StorageFailed, "try later"),
        ("athena", refusal("AccessDeniedException", "User is not authorized"), StorageFailed, "StartQueryExecution"),
        ("athena", refusal("InvalidRequestException", "WorkGroup x is not found."), UsageError, "&workgroup=NAME"),
        ("athena", refusal("TooManyRequestsException", "Rate exceeded"), StorageFailed, "try later"),
    ],
)
def test_what_aws_refuses_is_one_line(
    athena_place: AthenaPlace, blobs: BlobStore, between: Interposer,
    service: str, fault: Answer, kind: type[DocgenError], said: str,
) -> None:  # fmt: skip
    seal(blobs, "r1", {"orders": orders_and_notes("r1", units=1)["orders"]})
    between.next("POST", fault)
    with closing(through(between, athena_place, service, tries=1)) as sink, pytest.raises(kind) as caught:
        export_run("r1", blobs=blobs, sink=sink)
    assert said in str(caught.value)
    assert athena_place.database in str(caught.value)
    assert "\n" not in str(caught.value)
    assert athena_place.tables() == set()


def test_a_query_that_fails_says_why(athena_place: AthenaPlace, blobs: BlobStore, between: Interposer) -> None:
    seal(blobs, "r1", orders_and_notes("r1", units=1))
    export("r1", blobs, athena_place)
    status = {"State": "FAILED", "StateChangeReason": "Query exhausted resources\nat this scale factor."}
    failed = {"QueryExecution": {"QueryExecutionId": "q", "Status": status}}
    between.next("POST", None, Answer(200, json.dumps(failed).encode(), {"Content-Type": "application/x-amz-json-1.1"}))
    with closing(through(between, athena_place, "athena")) as sink, pytest.raises(StorageFailed) as caught:
        sink.counts("r1")
    assert "failed: Query exhausted resources at this scale factor; try again later" in str(caught.value)


def test_wrong_names_are_one_line(athena_place: AthenaPlace, blobs: BlobStore) -> None:
    seal(blobs, "r1", orders_and_notes("r1", units=1))
    uri = athena_place.uri
    for wrong, said in (
        (uri.replace(f"//{athena_place.database}?", "//nothing_here?"), "there is no database 'nothing_here'"),
        (uri.replace(f"s3://{BUCKET}/", "s3://no-such-bucket/"), "no-such-bucket"),
    ):
        with closing(open_sink(wrong, athena_place.clients)) as sink, pytest.raises(DocgenError) as caught:
            export_run("r1", blobs=blobs, sink=sink)
        assert said in str(caught.value)
        assert "\n" not in str(caught.value)
    assert athena_place.tables() == set()
    export("r1", blobs, athena_place)
    elsewhere = open_sink(f"{uri}/elsewhere", athena_place.clients)
    with closing(elsewhere), pytest.raises(UsageError, match="belongs to another output"):
        export_run("r1", blobs=blobs, sink=elsewhere)


def test_nothing_is_asked_before_the_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name, text in (
        ("CONFIG_FILE", "/dev/null"),
        ("SHARED_CREDENTIALS_FILE", "/dev/null"),
        ("EC2_METADATA_DISABLED", "true"),
    ):
        monkeypatch.setenv(f"AWS_{name}", text)
    uri = f"athena://golden?output=s3://{BUCKET}/x"
    for place, said in ((uri, "no region is named"), (f"{uri}&region={REGION}", "set AWS_PROFILE")):
        with closing(open_sink(place)) as sink, pytest.raises(UsageError, match=said):
            sink.counts("r1")


def test_a_server_out_of_reach_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config(retries={"total_max_attempts": 1})
    glue = boto3.session.Session().client(
        "glue", endpoint_url=f"http://127.0.0.1:{free_ports(1)[0]}", region_name=REGION,
        aws_access_key_id=KEY_ID, aws_secret_access_key=SECRET, config=config,
    )  # fmt: skip
    sink = AthenaSink("golden", output=f"s3://{BUCKET}/x", clients=AthenaClients(glue=glue))
    with closing(sink), pytest.raises(StorageFailed, match="see that the region is right"):
        sink.counts("r1")


def test_rows_of_other_columns_are_not_mixed_in(athena_place: AthenaPlace, blobs: BlobStore) -> None:
    seal(blobs, "r1", orders_and_notes("r1", units=1))
    export("r1", blobs, athena_place)
    with_other_columns(blobs)
    with pytest.raises(UsageError, match=r"'orders' holds rows of other columns \(copies\)"):
        export("r2", blobs, athena_place)
    with closing(athena_place.open()) as sink:
        sink.remove("r1")
    export("r2", blobs, athena_place)
    assert [row["run_id"] for row in athena_place.rows("orders")] == ["r2"]
    assert "copies" not in athena_place.read("orders").schema.names


def with_other_columns(blobs: BlobStore) -> None:
    """A run r2 whose orders are declared without the number of copies."""
    fewer = pa.schema([field for field in ORDERS if field.name != "copies"])
    row = {**keys("r2", 0), "po_number": None, "due": None, "rate": Decimal(1)}
    seal(blobs, "r2", {"orders": [encode_shard("orders", fewer, [row])]})


@pytest.mark.parametrize(("step", "refused"), [("announce", UsageError), ("announce_values", StorageFailed)])
def test_columns_of_two_first_exports_at_once_are_not_mixed(
    athena_place: AthenaPlace, blobs: BlobStore, step: str, refused: type[DocgenError]
) -> None:
    """Another run of other columns is exported whole before this step of an export that found no table yet."""
    seal(blobs, "r1", orders_and_notes("r1"))
    with_other_columns(blobs)
    with closing(athena_place.open()) as sink:
        taken = getattr(sink._catalogue, step)

        def overtaken(*arguments: object) -> None:
            setattr(sink._catalogue, step, taken)
            export("r2", blobs, athena_place)
            taken(*arguments)

        setattr(sink._catalogue, step, overtaken)
        with pytest.raises(refused, match="other columns"):
            export_run("r1", blobs=blobs, sink=sink)
    assert [row["run_id"] for row in athena_place.rows("orders")] == ["r2"]
    assert "copies" not in athena_place.read("orders").schema.names
