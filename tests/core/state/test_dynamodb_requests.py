"""What stands between the store and DynamoDB: lost answers, throttling, conflicts, tables that are not ours."""

from __future__ import annotations

import json
import os
from uuid import uuid4

import pytest
from interposer import Answer, Interposer, Lost, interposed

from docgen_core.errors import StateUnusable, StorageFailed
from docgen_core.state import dynamodb_calls, open_state, prepare_state, transitions
from docgen_core.state.budget import ModelUsage, Settlement
from docgen_core.state.cloud import FORMAT_VERSION
from docgen_core.state.contract import Outlook, RunKind, RunMarker, UnitState
from docgen_core.state.primitives import Change, Posting


def _refusal(code: str, status: int = 400) -> Answer:
    body = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": f"{code}, by order"}
    return Answer(status, json.dumps(body).encode(), {"Content-Type": "application/x-amz-json-1.0"})


@pytest.fixture
def between(dynamodb_server, monkeypatch):
    """A server in front of DynamoDB's, that the store is sent to."""
    with interposed(dynamodb_server.port) as server:
        for name, value in dynamodb_server.behind(server.port).items():
            monkeypatch.setenv(name, value)
        yield server


@pytest.fixture
def uri(between: Interposer):
    uri = f"dynamodb://docgen-{uuid4().hex}?region=eu-west-1&skew_seconds=0"
    prepare_state(uri)
    between.forget()
    return uri


def _marker(units=3):
    return RunMarker("r", RunKind.DOCUMENTS, "runs/r", {}, "digest", units, 1, units)


def _planned(uri, units=3):
    store = open_state(uri)
    # However slow this machine is: each request of a claim has its known place.
    store.primitives.run_age_seconds = 3600.0
    store.create_run(_marker(units))
    store.mark_planned("r", "digest")
    return store


def test_a_run_whose_answer_was_lost_on_the_way_is_known_as_ones_own(uri, between):
    with open_state(uri) as store:
        between.next("POST", Lost())
        _, created = store.create_run(_marker())
        assert created
        between.next("POST", Lost())
        _, created = store.create_run(_marker())
        assert not created


def test_a_claim_whose_answer_was_lost_on_the_way_is_ones_own(uri, between):
    with _planned(uri, units=1) as store:
        # Seals, the segment, and then the claim's write.
        between.next("POST", None, None, Lost())
        (lease,) = store.claim_next_unit("r", "w").leases
        assert store.units("r")[0].generation == lease.generation == 1
        assert open_state(uri).claim_next_unit("r", "w").outlook is Outlook.BUSY


def test_a_claim_that_a_peer_made_while_it_was_tried_again_is_the_peers(uri, between):
    with _planned(uri, units=1) as store, open_state(uri) as peer:
        row = transitions.claimed(store.run("r"), 0, None, worker="w", now=0.0, working=True)
        assert peer.claim_next_unit("r", "peer").leases
        between.next("POST", _refusal("InternalServerError", 500))
        assert store.primitives.write_units([Change(None, row)]) == [False]
        assert store.units("r")[0].owner == "peer"


@pytest.mark.parametrize(
    "fault",
    [
        _refusal("ProvisionedThroughputExceededException"),
        _refusal("ThrottlingException"),
        _refusal("RequestLimitExceeded"),
        _refusal("TransactionConflictException"),
        _refusal("InternalServerError", 500),
        Answer(503, b"busy"),
        Lost(),
    ],
)
def test_what_passes_is_tried_again(uri, between, fault):
    with _planned(uri) as store:
        between.next("POST", fault)
        assert store.run("r").planned
        (lease,) = store.claim_next_unit("r", "w").leases
        between.next("POST", None, fault)
        assert store.fail_unit(lease, "it broke") is UnitState.FAILED


def test_what_does_not_pass_fails_after_some_tries_in_one_line(uri, between, monkeypatch):
    monkeypatch.setattr(dynamodb_calls, "PATIENCE_SECONDS", 0.2)
    with _planned(uri) as store:
        between.next("POST", *[_refusal("TransactionConflictException")] * 200)
        with pytest.raises(StorageFailed, match="did not serve") as failed:
            open_state(uri).run("r")
        assert "\n" not in str(failed.value)
        between.forget()
        assert store.run("r").planned


@pytest.mark.parametrize("code", ["AccessDeniedException", "UnrecognizedClientException", "ExpiredTokenException"])
def test_a_refusal_points_to_the_rights_that_are_needed(uri, between, code):
    with _planned(uri) as store:
        between.next("POST", _refusal(code))
        with pytest.raises(StorageFailed, match=r"docs/permissions\.md"):
            store.run("r")


def test_a_table_that_is_not_there_is_one_line_that_names_init(between):
    with open_state("dynamodb://nobody-made-it?region=eu-west-1") as store:
        for operation in (lambda: store.run("r"), lambda: store.list_runs(), lambda: store.create_run(_marker())):
            with pytest.raises(StateUnusable) as missing:
                operation()
            assert "docgen init --state dynamodb://nobody-made-it?region=eu-west-1" in str(missing.value)
            assert "\n" not in str(missing.value)


def test_init_makes_the_table_once(between):
    uri = f"dynamodb://docgen-{uuid4().hex}?region=eu-west-1"
    assert "is made" in prepare_state(uri)
    assert "was there already" in prepare_state(uri)
    with _planned(uri) as store:
        assert "was there already" in prepare_state(uri)
        assert store.run("r").planned


def test_another_programs_table_is_refused(between):
    table = f"other-{uuid4().hex}"
    dynamodb_calls.client("eu-west-1").create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
    )
    uri = f"dynamodb://{table}?region=eu-west-1"
    with pytest.raises(StateUnusable, match="is not a state store"):
        prepare_state(uri)
    with open_state(uri) as store, pytest.raises(StateUnusable, match="is not a state store"):
        store.run("r")


def test_a_run_of_another_format_is_refused_and_nothing_is_written(uri, every_operation):
    _planned(uri).close()
    client, table = dynamodb_calls.client("eu-west-1"), uri.partition("://")[2].partition("?")[0]
    (item,) = client.scan(TableName=table)["Items"]
    newer = {**item, "f": {"N": str(FORMAT_VERSION + 1)}}
    client.put_item(TableName=table, Item=newer)
    for operation in every_operation(_marker()):
        with open_state(uri) as store, pytest.raises(StateUnusable) as refused:
            operation(store)
        assert f"format {FORMAT_VERSION + 1}, this docgen reads format {FORMAT_VERSION}" in str(refused.value)
        assert "\n" not in str(refused.value) and refused.value.exit_code == 2
    assert client.scan(TableName=table)["Items"] == [newer]


def test_a_row_of_another_program_is_refused(uri):
    _planned(uri).close()
    client, table = dynamodb_calls.client("eu-west-1"), uri.partition("://")[2].partition("?")[0]
    (item,) = client.scan(TableName=table)["Items"]
    client.put_item(TableName=table, Item={"pk": item["pk"], "sk": item["sk"], "name": {"S": "a run of ours"}})
    with open_state(uri) as store, pytest.raises(StateUnusable, match="another program's"):
        store.list_runs()


def test_a_forked_process_makes_its_own_connections(uri):
    with _planned(uri, units=40) as store:
        assert store.claim_next_unit("r", "parent").leases
        children = []
        for number in range(3):
            child = os.fork()
            if child == 0:
                try:
                    leases = [store.claim_next_unit("r", f"child-{number}", limit=2).leases for _ in range(5)]
                    os._exit(0 if all(leases) else 1)
                finally:
                    os._exit(2)
            children.append(child)
        assert [store.claim_next_unit("r", "parent").outlook for _ in range(5)] == [Outlook.CLAIMED] * 5
        assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
        assert {unit.generation for unit in store.units("r")} == {1}


# Several rows at once: a budget's -------------------------------------------------------------


def _cancelled(*codes):
    body = {
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "message": "cancelled, by order",
        "CancellationReasons": [{"Code": code} for code in codes],
    }
    return Answer(400, json.dumps(body).encode(), {"Content-Type": "application/x-amz-json-1.0"})


@pytest.mark.parametrize(
    "fault",
    [
        Lost(),
        _cancelled("TransactionConflict", "None"),
        _cancelled("None", "ThrottlingError"),
        _refusal("TransactionInProgressException"),
        _refusal("InternalServerError", 500),
    ],
    ids=["answer lost", "conflict", "throttled", "in progress", "500"],
)
def test_a_grant_is_taken_once_whatever_happens_on_the_way(uri, between, fault):
    with _planned(uri) as store:
        store.set_budget("r", 1_600)
        # The grant, its shard, the budget, and then the transaction.
        between.next("POST", None, None, None, fault)
        assert store.open_grant("r", "w", 60, "g").held == 60
        assert (store.spend("r").budget.available, len(store.grants("r"))) == (1_540, 1)
        # One row alone is no transaction.
        between.next("POST", None, fault)
        store.settle_grant("r", Settlement("g", 1, {"m": ModelUsage(1, 1, 1, 50)}))
        assert store.close_grant("r", "g") == 10
        assert store.spend("r").budget.available == 1_550


def test_a_transaction_that_a_peer_overtook_while_it_was_tried_again_is_not_ones_own(uri, between):
    with _planned(uri) as store, open_state(uri) as peer:
        rows = [Posting.of("r", kind, "x", None, {"by": "w"}) for kind in ("one", "two")]
        assert peer.primitives.commit([Posting.of("r", "two", "x", None, {"by": "peer"})])
        between.next("POST", _refusal("InternalServerError", 500))
        assert not store.primitives.commit(rows)
        one, two = store.primitives.read_entries("r", [("one", "x"), ("two", "x")])
        assert one is None and two.body == {"by": "peer"}
