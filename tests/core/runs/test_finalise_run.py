"""Sealing: one root, whoever does it, however often, wherever the last one died."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from docgen_core.canonical import sha256_hex
from docgen_core.errors import Damage, RootConflict, RunCancelled, RunIncomplete, RunWithdrawn, WrongRunState
from docgen_core.runs import drain
from docgen_core.runs.finalise import finalize
from docgen_core.runs.manifest import read_root
from docgen_core.runs.verify import verify_run
from docgen_core.runs.withdraw import withdraw
from docgen_core.state.contract import RunState

RUN = "catalogue-v1"
ROOT = "catalogue/v1/manifest.json"


class Died(BaseException):
    """The process ends here: nothing catches this."""


class DyingStore:
    """A blob or state store whose process dies at a call, before or after it took effect."""

    def __init__(self, inner: Any, call: str, *, key: str = "", before: bool) -> None:
        self._inner, self._call, self._key, self._before = inner, call, key, before

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name != self._call:
            return found

        def dying(*args: Any, **kwargs: Any) -> Any:
            if self._key and self._key != args[0]:
                return found(*args, **kwargs)
            if not self._before:
                found(*args, **kwargs)
            raise Died

        return dying


@pytest.fixture
def drained(stage: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Every unit is DONE, and the worker died before it could seal."""

    def die(*_: object) -> None:
        raise Died

    stage.plan_catalogue()
    with monkeypatch.context() as patch, pytest.raises(Died):
        patch.setattr(drain, "finalize", die)
        stage.work(RUN)
    assert stage.state.progress(RUN).done == 4
    return stage


def test_the_next_worker_seals_what_a_dead_one_drained(drained: Any) -> None:
    outcome = drained.work(RUN)
    assert outcome.kind == "COMPLETED" and outcome.units == 0
    assert outcome.root_digest == sha256_hex(drained.blobs.get(ROOT))


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize(
    ("store", "call", "key"),
    [
        ("state", "begin_finalize", ""),
        ("blobs", "put_same", ROOT),
        ("blobs", "put_same", f"sealed/{RUN}"),
        ("state", "complete_run", ""),
    ],
)
def test_a_death_at_any_step_is_healed_by_the_next_worker(
    drained: Any, store: str, call: str, key: str, before: bool
) -> None:
    places = {"state": drained.state, "blobs": drained.blobs}
    places[store] = DyingStore(places[store], call, key=key, before=before)
    with pytest.raises(Died):
        drained.work(RUN, **places)
    if drained.state.run(RUN).state is RunState.COMPLETED:
        assert drained.blobs.exists(ROOT) and drained.blobs.exists(f"sealed/{RUN}"), "COMPLETED implies the root"
    assert drained.work(RUN).kind == "COMPLETED"
    run = drained.state.run(RUN)
    assert run.state is RunState.COMPLETED
    assert run.root_digest == sha256_hex(drained.blobs.get(ROOT))
    assert drained.blobs.get(f"sealed/{RUN}") == f"{run.root_digest}\n".encode()
    assert verify_run(RUN, blobs=drained.blobs, state=drained.state, deep=True).ok


@pytest.mark.parametrize("lost", [f"sealed/{RUN}", ROOT])
def test_a_completed_run_without_marker_or_root_is_healed(drained: Any, lost: str) -> None:
    digest = finalize(RUN, drained.state, drained.blobs)
    drained.blobs.delete(lost)
    assert drained.work(RUN).root_digest == digest
    assert drained.blobs.exists(lost)
    assert verify_run(RUN, blobs=drained.blobs, state=drained.state, deep=True).ok


def test_eight_finishers_at_once_write_one_root(drained: Any) -> None:
    start = threading.Barrier(8)

    def finish(_: int) -> str:
        store = drained.reopen()
        start.wait()
        return finalize(RUN, store, drained.blobs)

    with ThreadPoolExecutor(8) as pool:
        digests = set(pool.map(finish, range(8)))
    assert digests == {sha256_hex(drained.blobs.get(ROOT))}
    assert drained.state.run(RUN).root_digest in digests


class Counting:
    """A blob store that counts the parts that are read."""

    def __init__(self, inner: Any) -> None:
        self._inner, self.parts_read = inner, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def get(self, key: str) -> bytes:
        self.parts_read += "/manifest/" in key
        return self._inner.get(key)


def test_a_late_finisher_believes_a_sealed_root_that_has_the_stores_digests(drained: Any) -> None:
    with pytest.raises(Died):
        finalize(RUN, DyingStore(drained.state, "complete_run", before=True), drained.blobs)
    late = Counting(drained.blobs)
    assert finalize(RUN, drained.state, late) == sha256_hex(drained.blobs.get(ROOT))
    assert late.parts_read == 0 and drained.state.run(RUN).state is RunState.COMPLETED


@pytest.mark.parametrize("field", ["parts", "plan_sha256", "rows"])
def test_a_sealed_root_that_differs_from_the_store_is_a_conflict(drained: Any, field: str) -> None:
    with pytest.raises(Died):
        finalize(RUN, DyingStore(drained.state, "complete_run", before=True), drained.blobs)
    root = read_root(drained.blobs, "catalogue/v1")
    other = {"parts": root.parts[:-1], "plan_sha256": "0" * 64, "rows": {"companies": 9}}[field]
    data = root.model_copy(update={field: other}).to_bytes()
    drained.blobs.put(ROOT, data)
    drained.blobs.put(f"sealed/{RUN}", f"{sha256_hex(data)}\n".encode())
    with pytest.raises(RootConflict, match=sha256_hex(data)):
        finalize(RUN, drained.state, drained.blobs)
    assert drained.state.run(RUN).state is RunState.FINALIZING


def test_another_root_is_never_overwritten(drained: Any) -> None:
    drained.blobs.put(ROOT, b"another root\n")
    with pytest.raises(RootConflict) as conflict:
        finalize(RUN, drained.state, drained.blobs)
    assert sha256_hex(b"another root\n") in str(conflict.value) and conflict.value.exit_code == 1
    assert drained.blobs.get(ROOT) == b"another root\n"
    assert drained.state.run(RUN).state is RunState.FINALIZING


def test_another_marker_is_never_overwritten(drained: Any) -> None:
    drained.blobs.put(f"sealed/{RUN}", b"0" * 64 + b"\n")
    with pytest.raises(RootConflict, match=r"0{64}"):
        finalize(RUN, drained.state, drained.blobs)
    assert drained.state.run(RUN).state is RunState.FINALIZING


def test_a_changed_part_is_not_sealed(drained: Any) -> None:
    key = "catalogue/v1/manifest/unit-000002.json"
    drained.blobs.put(key, drained.blobs.get(key).replace(b'"count":2', b'"count":3'))
    with pytest.raises(Damage, match="unit-000002"):
        finalize(RUN, drained.state, drained.blobs)
    assert not drained.blobs.exists(ROOT)


def test_a_gap_is_refused_by_index(stage: Any) -> None:
    stage.plan_catalogue()
    stage.work(RUN, within={0, 2})
    with pytest.raises(RunIncomplete) as incomplete:
        finalize(RUN, stage.state, stage.blobs)
    assert incomplete.value.gap == (1, 3)
    assert stage.state.run(RUN).state is RunState.RUNNING and not stage.blobs.exists(ROOT)


def test_a_paused_cancelled_or_withdrawn_run_is_not_sealed(drained: Any) -> None:
    drained.state.pause(RUN)
    with pytest.raises(WrongRunState):
        finalize(RUN, drained.state, drained.blobs)
    drained.state.cancel(RUN)
    with pytest.raises(RunCancelled):
        finalize(RUN, drained.state, drained.blobs)
    withdraw(RUN, drained.blobs)
    with pytest.raises(RunWithdrawn):
        finalize(RUN, drained.state, drained.blobs)
    assert not drained.blobs.exists(ROOT)


def test_the_root_says_what_is_in_the_run_and_nothing_of_who_made_it(drained: Any) -> None:
    finalize(RUN, drained.state, drained.blobs)
    text = drained.blobs.get(ROOT).decode()
    assert '"rows":{"companies":8,"goods":16}' in text and '"version":"v1"' in text
    assert text.endswith("}\n") and " " not in text
    for word in ("owner", "generation", "created", "worker", "attempt"):
        assert word not in text
