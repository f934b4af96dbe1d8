"""URIs of the stores in the clouds, and the one line for what is missing to use them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from docgen_core.errors import DocgenError, MissingExtra, StateUnusable, StorageFailed, UsageError
from docgen_core.state import dynamodb_calls, open_state, prepare_state

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def keys(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")


@pytest.mark.parametrize(
    ("uri", "again"),
    [
        (
            "dynamodb://docgen?lease_seconds=5&region=eu-west-1",
            "dynamodb://docgen?region=eu-west-1&lease_seconds=5.0",
        ),
        ("DynamoDB://docgen_1.a-b?region=eu-west-1&skew_seconds=60", "dynamodb://docgen_1.a-b?region=eu-west-1"),
        ("firestore://my-project/corpora?max_attempts=9", "firestore://my-project/corpora?max_attempts=9"),
        ("firestore://my-project", "firestore://my-project/%28default%29"),
        ("firestore://my-project/(default)?skew_seconds=0", "firestore://my-project/%28default%29?skew_seconds=0.0"),
    ],
)
def test_a_uri_names_the_same_store_to_another_process(uri, again, keys, monkeypatch):
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", "127.0.0.1:9")
    with open_state(uri) as store:
        assert store.uri == again
    with open_state(again) as reopened:
        assert reopened.uri == again


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("dynamodb://", "names no place"),
        ("dynamodb://ab", "write dynamodb://TABLE?region=eu-west-1"),
        ("dynamodb://a/table", "write dynamodb://TABLE"),
        ("dynamodb:table", "write dynamodb://"),
        (
            "dynamodb://table?zone=1",
            "no setting 'zone'; there are region, lease_seconds, max_attempts and skew_seconds",
        ),
        ("memory://x?region=eu-west-1", "no setting 'region'"),
        ("firestore://Project/db", "write firestore://PROJECT/DATABASE"),
        ("firestore://project/db/units", "write firestore://PROJECT/DATABASE"),
        ("firestore://project?region=eu-west-1", "no setting 'region'"),
    ],
)
def test_a_uri_that_cannot_be_read_is_refused_in_one_line(uri, says):
    with pytest.raises(UsageError) as refused:
        open_state(uri)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_without_a_region_anywhere_the_line_says_where_to_name_one(monkeypatch, tmp_path):
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    # An endpoint of its own: clients are shared in a process.
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", NOWHERE + "/no-region")
    with pytest.raises(UsageError, match=r"\?region=eu-west-1"):
        open_state("dynamodb://table")


def test_the_region_that_the_platform_names_is_taken_unless_the_clients_own_variable_is_set(keys, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", NOWHERE + "/platform")
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    assert dynamodb_calls.client(None).meta.region_name == "eu-north-1"
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", NOWHERE + "/own")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-south-1")
    assert dynamodb_calls.client(None).meta.region_name == "eu-south-1"


def test_a_server_that_is_not_there_is_one_line_after_some_tries(keys, monkeypatch):
    monkeypatch.setattr(dynamodb_calls, "PATIENCE_SECONDS", 0.1)
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", NOWHERE)
    with open_state("dynamodb://table?region=eu-west-1") as store, pytest.raises(StorageFailed) as failed:
        store.run("r")
    assert "did not serve a request" in str(failed.value)
    assert "\n" not in str(failed.value)


@pytest.mark.parametrize(
    ("module", "uri", "extra"),
    [("boto3", "dynamodb://table?region=eu-west-1", "aws"), ("google.cloud.firestore", "firestore://project", "gcp")],
)
@pytest.mark.parametrize("function", ["open_state", "prepare_state"])
def test_a_client_that_is_not_installed_is_named_with_its_install(module, uri, extra, function):
    script = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)
sys.meta_path.insert(0, Absent())
from docgen_core.errors import MissingExtra
from docgen_core.state import {function}
try:
    {function}({uri!r})
except MissingExtra as missing:
    print(missing)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert f"pip install 'docgen[{extra}]'" in done.stdout
    assert issubclass(MissingExtra, DocgenError)


def test_a_closed_store_says_so(keys, monkeypatch):
    store = open_state("dynamodb://table?region=eu-west-1")
    store.close()
    with pytest.raises(StateUnusable, match="closed"):
        store.run("r")


def test_what_needs_no_preparation_is_prepared(tmp_path):
    assert "state store" in prepare_state(tmp_path / "new" / "state.db")
    assert (tmp_path / "new" / "state.db").is_file()
    assert prepare_state("memory://x")
