"""A worker may die at any write, before or after it took effect: the next one makes the same run."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from docgen_core.errors import StorageFailed
from docgen_core.runs.outcomes import DrainEnd
from docgen_core.runs.verify import verify_run

LEASE = "?lease_seconds=0.2&max_attempts=1000"


class Died(BaseException):
    """The process ends here: nothing catches this, and nothing is handed back."""


class MortalBlobs:
    """A blob store whose process dies at its k-th write; with `after`, the write is there all the same."""

    def __init__(self, blobs: Any, dies_at: int, *, after: bool) -> None:
        self._blobs, self._left, self._after = blobs, dies_at, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._blobs, name)

    def put(self, key: str, data: bytes, *, create_only: bool = False) -> None:
        self._left -= 1
        if self._left < 0:
            if self._after:
                self._blobs.put(key, data, create_only=create_only)
            raise Died
        self._blobs.put(key, data, create_only=create_only)

    def put_same(self, key: str, data: bytes) -> bool:
        return type(self._blobs).put_same(self, key, data)  # type: ignore[no-any-return]


class MortalState:
    """A state store that is gone with its process: nothing is released any more."""

    def __init__(self, state: Any) -> None:
        self._state = state

    def __getattr__(self, name: str) -> Any:
        if name == "release":
            return lambda lease, **_: None
        return getattr(self._state, name)


@pytest.mark.parametrize("after", [False, True], ids=["before the write", "after it, the answer lost"])
def test_a_death_at_every_write_leaves_the_same_keys_and_digests(open_stage: Any, after: bool) -> None:
    expected = open_stage("undisturbed")
    expected.done(documents=3, unit_size=2)
    wanted = expected.digests("runs/")
    writes = sum("unit-000000" in key for key in wanted)
    stage = open_stage("killed", LEASE)
    stage.catalogue()
    stage.plan(documents=3, unit_size=2)
    deaths = 0
    for write in itertools.count():
        # Each worker gets one write further into whatever is left than the one before.
        blobs = MortalBlobs(stage.blobs, dies_at=write % (writes + 1), after=after)
        try:
            outcome = stage.work(state=MortalState(stage.state), blobs=blobs)
        except Died:
            deaths += 1
            continue
        assert outcome.kind is DrainEnd.COMPLETED
        break
    assert deaths >= writes > 8, "at least one at each write of a whole unit"
    assert stage.digests("runs/") == wanted
    assert verify_run("r1", blobs=stage.blobs, state=stage.state, deep=True).findings == ()


def test_each_single_write_of_a_catalogue_may_be_the_last(open_stage: Any) -> None:
    expected = open_stage("undisturbed")
    expected.catalogue(companies=3)
    wanted = expected.digests("")
    writes = len(wanted)
    for write, after in itertools.product(range(writes), (False, True)):
        stage = open_stage(f"killed-{write}-{after}", LEASE)
        blobs = MortalBlobs(stage.blobs, dies_at=write, after=after)
        whole, stage.blobs = stage.blobs, blobs
        with pytest.raises(Died):
            stage.plan_catalogue(companies=3)
            stage.work("catalogue-v1", state=MortalState(stage.state))
        stage.blobs = whole
        stage.work("catalogue-v1", takeover_seconds=0.0)
        assert stage.digests("") == wanted, f"write {write}"
        assert verify_run("catalogue-v1", blobs=stage.blobs, state=stage.state, deep=True).findings == ()


OPERATIONS = ("claim_next_unit", "complete_unit", "begin_finalize", "complete_run")


class LosesAnswers:
    """A state store that does what it is asked, and loses the first answer of each operation."""

    def __init__(self, state: Any) -> None:
        self._state, self.lost = state, set[str]()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._state, name)
        if name not in OPERATIONS or name in self.lost:
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            found(*args, **kwargs)
            self.lost.add(name)
            raise StorageFailed("the connection was reset")

        return call


def test_lost_answers_of_the_store_end_workers_and_lose_nothing(open_stage: Any) -> None:
    stage = open_stage("lost", LEASE)
    stage.plan_catalogue()
    state = LosesAnswers(stage.state)
    for operation in OPERATIONS:
        with pytest.raises(StorageFailed):
            stage.work("catalogue-v1", state=state)
        assert operation in state.lost
    assert stage.work("catalogue-v1", state=state).kind is DrainEnd.COMPLETED
    assert sorted(unit.attempts for unit in stage.state.units("catalogue-v1")) == [1, 1, 1, 2]
    assert verify_run("catalogue-v1", blobs=stage.blobs, state=stage.state, deep=True).findings == ()
