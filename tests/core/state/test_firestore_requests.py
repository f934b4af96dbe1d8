"""What stands between the store and Firestore: lost answers, contention, refusals, indexes, forks."""

from __future__ import annotations

import os
from concurrent import futures
from types import SimpleNamespace
from uuid import uuid4

import grpc
import pytest
from bad_network import Fault, bad_network
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore import Client
from google.cloud.firestore_admin_v1 import Field, FirestoreAdminClient, UpdateFieldRequest
from google.cloud.firestore_admin_v1.services.firestore_admin.transports import FirestoreAdminGrpcTransport
from google.cloud.firestore_admin_v1.types import GetFieldRequest
from google.cloud.firestore_v1.batch import WriteBatch
from google.cloud.firestore_v1.bulk_batch import BulkWriteBatch
from google.cloud.firestore_v1.query import Query
from google.longrunning.operations_pb2 import Operation

from docgen_core.errors import StateUnusable, StorageFailed
from docgen_core.state import firestore_admin, firestore_calls, open_state, prepare_state, transitions
from docgen_core.state.budget import ModelUsage, Settlement
from docgen_core.state.cloud import FORMAT_VERSION
from docgen_core.state.contract import Outlook, RunKind, RunMarker, UnitState
from docgen_core.state.primitives import Change, Posting

PASSING = [exceptions.ServiceUnavailable, exceptions.Aborted, exceptions.DeadlineExceeded]


@pytest.fixture
def uri(firestore_server, monkeypatch):
    for name, value in firestore_server.environment.items():
        monkeypatch.setenv(name, value)
    return f"firestore://docgen-{uuid4().hex[:16]}/corpora?skew_seconds=0"


@pytest.fixture
def disturb(monkeypatch):
    """Let coming requests to write fail, before they are made or after."""
    faults = []

    def disturbing(commit):
        def disturbed(batch, *args, **options):
            error, done = faults.pop(0) if faults else (None, True)
            answer = commit(batch, *args, **options) if done else None
            if error is not None:
                raise error
            return answer

        return disturbed

    for kind in (BulkWriteBatch, WriteBatch):
        monkeypatch.setattr(kind, "commit", disturbing(kind.commit))
    return lambda error, *, done: faults.append((error("by order"), done))


def _marker(units=3):
    return RunMarker("r", RunKind.DOCUMENTS, "runs/r", {"lists": [[1], []]}, "digest", units, 1, units)


def _planned(uri, units=3):
    store = open_state(uri)
    store.create_run(_marker(units))
    store.mark_planned("r", "digest")
    return store


@pytest.mark.parametrize("error", PASSING)
@pytest.mark.parametrize("done", [True, False], ids=["answer lost", "never done"])
def test_a_write_that_failed_on_the_way_is_ones_own_when_it_was_done(uri, disturb, error, done):
    with open_state(uri) as store:
        disturb(error, done=done)
        assert store.create_run(_marker())[1]
        store.mark_planned("r", "digest")
        disturb(error, done=done)
        leases = store.claim_next_unit("r", "w", limit=2).leases
        assert [unit.generation for unit in store.units("r")] == [lease.generation for lease in leases] == [1, 1]
        disturb(error, done=done)
        assert store.fail_unit(leases[0], "it broke") is UnitState.FAILED
        disturb(error, done=done)
        assert not store.create_run(_marker())[1]


@pytest.mark.parametrize("error", PASSING)
def test_a_query_that_breaks_off_in_the_middle_is_asked_again(uri, monkeypatch, error):
    ask, broken = Query._get_stream_iterator, []

    def breaking(query, *args, **options):
        answers, prefix = ask(query, *args, **options)
        if broken:
            return answers, prefix
        broken.append(query)
        return _broken_off(answers, error("by order")), prefix

    with _planned(uri) as store:
        store.claim_next_unit("r", "w", limit=3)
        monkeypatch.setattr(Query, "_get_stream_iterator", breaking)
        assert [unit.index for unit in store.units("r")] == [0, 1, 2]
        assert broken


def _broken_off(answers, error):
    yield next(answers)
    raise error


def test_a_claim_that_a_peer_made_while_it_was_tried_again_is_the_peers(uri, disturb):
    with _planned(uri, units=1) as store, open_state(uri) as peer:
        row = transitions.claimed(store.run("r"), 0, None, worker="w", now=0.0, working=True)
        assert peer.claim_next_unit("r", "peer").leases
        disturb(exceptions.ServiceUnavailable, done=False)
        assert store.primitives.write_units([Change(None, row)]) == [False]
        assert store.units("r")[0].owner == "peer"


@pytest.mark.parametrize("silent", [1, 2, 3, 4])
def test_a_connection_that_has_fallen_silent_is_left_for_another(uri, firestore_server, monkeypatch, silent):
    plan = SimpleNamespace(fault=lambda number: Fault.SILENT if number == silent else None, silent_seconds=None)
    with bad_network(firestore_server.port, plan) as network:
        for name, value in firestore_server.behind(network.port).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(firestore_calls, "ANSWER_SECONDS", 1.0)
        with open_state(uri) as store:
            created, read = store.create_run(_marker())[1], store.list_runs()
        assert created and [run.run_id for run in read] == ["r"]
        assert network.struck.total() == (silent <= 3), "each of the three requests in turn, and none"


@pytest.mark.parametrize("others", [True, False], ids=["others are answered", "nobody is answered"])
def test_a_request_that_took_too_long_ends_the_connection_only_when_nobody_is_answered(uri, monkeypatch, others):
    commit, left = BulkWriteBatch.commit, []

    def slow(*_, **__):
        monkeypatch.setattr(BulkWriteBatch, "commit", commit)
        if others:
            assert store.run("r").planned
        raise exceptions.DeadlineExceeded("by order")

    with _planned(uri) as store:
        monkeypatch.setattr(firestore_calls, "_leave_connection", lambda *_: left.append("left"))
        monkeypatch.setattr(BulkWriteBatch, "commit", slow)
        assert store.claim_next_unit("r", "w").leases
    assert left == ([] if others else ["left"])


@pytest.mark.parametrize("error", PASSING)
@pytest.mark.parametrize("done", [True, False], ids=["answer lost", "never done"])
def test_a_grant_is_taken_once_whatever_happens_on_the_way(uri, disturb, error, done):
    with _planned(uri) as store:
        disturb(error, done=done)
        store.set_budget("r", 1_600)
        disturb(error, done=done)
        assert store.open_grant("r", "w", 60, "g").held == 60
        disturb(error, done=done)
        store.settle_grant("r", Settlement("g", 1, {"m": ModelUsage(1, 1, 1, 50)}))
        disturb(error, done=done)
        assert store.close_grant("r", "g") == 10
        assert (store.spend("r").budget.available, len(store.grants("r"))) == (1_550, 1)


def test_a_commit_that_a_peer_overtook_while_it_was_tried_again_is_not_ones_own(uri, disturb):
    with _planned(uri) as store, open_state(uri) as peer:
        rows = [Posting.of("r", kind, "x", None, {"by": "w"}) for kind in ("one", "two")]
        assert peer.primitives.commit([Posting.of("r", "two", "x", None, {"by": "peer"})])
        disturb(exceptions.ServiceUnavailable, done=False)
        assert not store.primitives.commit(rows)
        one, two = store.primitives.read_entries("r", [("one", "x"), ("two", "x")])
        assert one is None and two.body == {"by": "peer"}


def test_what_does_not_pass_fails_after_a_while_in_one_line(uri, disturb, monkeypatch):
    monkeypatch.setattr(firestore_calls, "PATIENCE_SECONDS", 0.3)
    with open_state(uri) as store:
        for _ in range(200):
            disturb(exceptions.Aborted, done=False)
        with pytest.raises(StorageFailed, match="did not serve a request") as failed:
            store.create_run(_marker())
        assert "\n" not in str(failed.value)


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (exceptions.PermissionDenied, StorageFailed, r"docs/permissions\.md"),
        (exceptions.Unauthenticated, StorageFailed, r"docs/permissions\.md"),
        (exceptions.NotFound, StateUnusable, r"gcloud firestore databases create .*docgen init"),
    ],
)
def test_a_refusal_says_what_to_do(uri, disturb, error, kind, says):
    with open_state(uri) as store:
        disturb(error, done=False)
        with pytest.raises(kind, match=says):
            store.create_run(_marker())


def test_a_batch_too_large_for_one_request_is_claimed_whole(uri):
    with _planned(uri, units=250) as store:
        assert len(store.claim_next_unit("r", "w", limit=250).leases) == 250
        assert store.progress("r").running == 250


def _client(uri):
    project, _, database = uri.partition("://")[2].partition("?")[0].partition("/")
    return Client(project=project, database=database)


def test_a_run_of_another_format_is_refused_and_nothing_is_written(uri, every_operation):
    _planned(uri).close()
    run = _client(uri).document("runs/r")
    run.update({"row.format": FORMAT_VERSION + 1})
    before = run.get()
    for operation in every_operation(_marker()):
        with open_state(uri) as store, pytest.raises(StateUnusable) as refused:
            operation(store)
        assert f"format {FORMAT_VERSION + 1}, this docgen reads format {FORMAT_VERSION}" in str(refused.value)
        assert "\n" not in str(refused.value) and refused.value.exit_code == 2
    assert run.get().update_time == before.update_time
    assert not list(run.collections())


@pytest.mark.parametrize("content", [{}, {"row": "ours"}, {"row": {"format": "pdf"}}, {"row": [1]}])
def test_a_document_of_another_program_is_refused(uri, content):
    _client(uri).document("runs/r").set(content)
    with open_state(uri) as store:
        for operation in (lambda: store.list_runs(), lambda: store.run("r"), lambda: store.create_run(_marker())):
            with pytest.raises(StateUnusable, match="another program's"):
                operation()


def test_a_forked_process_makes_its_own_connections(uri):
    with _planned(uri, units=40) as store:
        assert store.claim_next_unit("r", "parent").leases
        child = os.fork()
        if child == 0:
            try:
                leases = [store.claim_next_unit("r", "child", limit=2).leases for _ in range(5)]
                os._exit(0 if all(leases) else 1)
            finally:
                os._exit(2)
        assert [store.claim_next_unit("r", "parent").outlook for _ in range(5)] == [Outlook.CLAIMED] * 5
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert {unit.generation for unit in store.units("r")} == {1}


# Preparing ---------------------------------------------------------------------------------


def test_an_emulator_needs_no_preparation(uri):
    assert "is an emulator's" in prepare_state(uri)
    assert "is an emulator's" in prepare_state(uri)


class Indexes(grpc.GenericRpcHandler):
    """The part of Firestore's administration that knows which fields have indexes."""

    def __init__(self):
        self.fields = {}
        self.changes = 0

    def service(self, call):
        name = call.method.rpartition("/")[2]
        handlers = {
            "GetField": (self.get, GetFieldRequest.deserialize, Field.serialize),
            "UpdateField": (self.update, UpdateFieldRequest.deserialize, Operation.SerializeToString),
        }
        method, read, write = handlers[name]
        return grpc.unary_unary_rpc_method_handler(method, request_deserializer=read, response_serializer=write)

    def get(self, request, _):
        automatic = Field(name=request.name, index_config=Field.IndexConfig(uses_ancestor_config=True))
        return self.fields.get(request.name, automatic)

    def update(self, request, _):
        self.fields[request.field.name] = request.field
        self.changes += 1
        operation = Operation(name="done", done=True)
        operation.response.Pack(Field.pb(request.field))
        return operation


@pytest.fixture
def indexes(monkeypatch):
    served = Indexes()
    server = grpc.server(futures.ThreadPoolExecutor(2), handlers=[served])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    channel = grpc.insecure_channel(f"127.0.0.1:{port}")
    transport = FirestoreAdminGrpcTransport(channel=channel, credentials=AnonymousCredentials())
    monkeypatch.setattr(firestore_admin, "admin_client", lambda: FirestoreAdminClient(transport=transport))
    yield served
    channel.close()
    server.stop(None)


def test_what_no_query_asks_for_is_taken_out_of_the_indexes_once(uri, indexes, monkeypatch):
    project, _, database = uri.partition("://")[2].partition("?")[0].partition("/")
    assert firestore_admin.exempt_rows(project, database) == 4
    assert firestore_admin.exempt_rows(project, database) == 0
    assert indexes.changes == 4
    place = f"projects/{project}/databases/{database}/collectionGroups"
    assert set(indexes.fields) == {f"{place}/{group}/fields/row" for group in ("runs", "units", "seals", "ledger")}
