"""A state URI: what it opens, what it sets, and the line for one that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from docgen_core.errors import UsageError
from docgen_core.state import open_state
from docgen_core.state.contract import RunKind, RunMarker


def settings_of(store):
    run, _ = store.create_run(RunMarker("r", RunKind.DOCUMENTS, "runs/r", {}, "digest", 1, 1, 1))
    return run.lease_seconds, run.max_attempts


def test_a_bare_path_is_sqlite_relative_to_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open_state("here/state.db") as store:
        assert store.uri == f"sqlite://{tmp_path}/here/state.db"
        assert settings_of(store) == (60.0, 5)
    assert (tmp_path / "here" / "state.db").is_file()
    with open_state(Path("here/state.db")) as again:
        assert again.uri == store.uri


@pytest.mark.parametrize("form", ["sqlite://{path}?{query}", "{path}?{query}", "SQLITE://{path}?{query}"])
def test_a_uri_sets_lease_and_attempts_and_its_uri_opens_the_same_again(tmp_path, form):
    uri = form.format(path=tmp_path / "s.db", query="lease_seconds=2.5&max_attempts=50&skew_seconds=0.5")
    with open_state(uri) as store:
        assert settings_of(store) == (2.5, 50)
        assert store.uri.endswith("s.db?lease_seconds=2.5&max_attempts=50&skew_seconds=0.5")
    with open_state(store.uri) as again:
        assert again.uri == store.uri
        assert again.run("r").lease_seconds == 2.5


@pytest.mark.parametrize("name", ["with space.db", "100%.db", "a#b.db", "状態.db"])
def test_any_file_name_survives_its_uri(tmp_path, name):
    with open_state(tmp_path / name) as store:
        settings_of(store)
    assert (tmp_path / name).is_file()
    with open_state(store.uri) as again:
        assert again.run("r").run_id == "r"


def test_a_memory_store_is_shared_by_its_name_in_this_process():
    settings_of(open_state("memory://shared-by-name"))
    assert open_state("memory://shared-by-name").run("r").run_id == "r"
    assert open_state("memory://another-name").list_runs() == []


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("", "names no place"),
        ("sqlite://", "names no place"),
        ("sqlite://relative/state.db", "three slashes"),
        ("sqlite:state.db", "write sqlite://"),
        ("redis://host/0", "there are sqlite, memory"),
        ("memory://x?lease_seconds=0", "lease_seconds is a number of seconds, more than 0"),
        ("memory://x?lease_seconds=-1", "more than 0, not '-1'"),
        ("memory://x?lease_seconds=nan", "not 'nan'"),
        ("memory://x?lease_seconds=inf", "not 'inf'"),
        ("memory://x?lease_seconds=soon", "not 'soon'"),
        ("memory://x?lease_seconds=", "not ''"),
        ("memory://x?max_attempts=0", "max_attempts is a whole number, 1 or more"),
        ("memory://x?max_attempts=2.5", "not '2.5'"),
        ("memory://x?max_attempts=-3", "not '-3'"),
        ("memory://x?skew_seconds=-1", "skew_seconds is a number of seconds, 0 or more"),
        ("memory://x?lease=5", "no setting 'lease'; there are lease_seconds, max_attempts and skew_seconds"),
        ("memory://x?lease_seconds=5&lease_seconds=6", "twice"),
        ("memory://x?lease_seconds", "settings look like"),
    ],
)
def test_a_uri_that_cannot_be_read_is_refused_in_one_line(uri, says):
    with pytest.raises(UsageError) as error:
        open_state(uri)
    assert says in str(error.value)
    assert "\n" not in str(error.value)
    assert uri in str(error.value)
