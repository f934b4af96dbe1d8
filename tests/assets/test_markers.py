"""New markers are found whatever their names, with a small cursor and bounded looking."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docgen_assets import markers
from docgen_assets.markers import BUCKETS, Sweep

MOST_A_TICK = 40


def tick(sweep: Sweep, present: set[str], *, most: int = MOST_A_TICK) -> tuple[Sweep, list[str]]:
    """One tick as the sensor does it: the sweep goes through text, and the walk is left half way."""

    def names(after: str) -> Iterator[str]:
        return (name for name in sorted(present) if name > after)

    walk, found = sweep.due(names)
    walked = []
    for run_id in walk.new(found):
        if len(walked) == most:
            break
        walked.append(run_id)
    return Sweep.of(json.loads(json.dumps(sweep.as_json()))), walked


def everything(present: set[str]) -> Sweep:
    """A sweep that knows all of these."""
    sweep, walked = tick(Sweep(), present, most=len(present) + 1)
    assert set(walked) == present
    return sweep


def test_a_new_run_among_ten_thousand_is_seen_at_once_wherever_it_sorts():
    present = {f"run-{number:05d}" for number in range(10_000)}
    sweep = everything(present)
    for newcomer in ("a-first-in-order", "run-05000x", "zzz-last-in-order"):
        present.add(newcomer)
        sweep, walked = tick(sweep, present, most=3 * 10_000 // BUCKETS)
        assert newcomer in walked
    assert tick(sweep, present)[1] == []


def test_the_cursor_stays_small():
    sweep = everything({f"run-{number:05d}" for number in range(10_000)})
    assert len(json.dumps(sweep.as_json())) < 2_000


def test_a_run_that_must_be_looked_at_again_is_and_starves_no_other():
    sweep = Sweep()
    seen: list[str] = []
    for _ in range(4):
        walk, found = sweep.due(lambda after: iter(["held-up", "ready"]))
        for run_id in walk.new(found):
            walk.again = run_id == "held-up" or walk.again
            seen.append(run_id)
    assert seen.count("held-up") == 4
    assert seen.count("ready") == 1


def test_a_removed_marker_brings_only_its_bucket_up_again():
    present = {f"run-{number}" for number in range(2_000)}
    _, walked = tick(everything(present), present - {"run-7"})
    assert len(walked) < 2_000 / BUCKETS * 4


def test_more_markers_than_a_window_holds_are_listed_a_window_a_tick(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(markers, "WINDOW", 10)
    present = {f"run-{number:02d}" for number in range(25)}
    sweep, seen = Sweep(), list[str]()
    for _ in range(3):
        sweep, walked = tick(sweep, present)
        assert 0 < len(walked) <= 10
        seen += walked
    assert sorted(seen) == sorted(present)
    assert [tick(sweep, present)[1] for _ in range(3)] == [[], [], []]


names = st.text(alphabet="abc019-", min_size=1, max_size=6)


@settings(max_examples=25 if os.environ.get("DOCGEN_PROVE") == "1" else 8, deadline=None)
@given(st.lists(st.sets(names, max_size=6), max_size=8), st.integers(1, 5), st.sampled_from([3, 100]))
def test_every_run_that_stays_is_seen_however_small_the_ticks(arrivals: list[set[str]], most: int, window: int):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(markers, "WINDOW", window)
        sweep, present, seen = Sweep(), set[str](), set[str]()
        for arrived in arrivals:
            present |= arrived
            sweep, walked = tick(sweep, present, most=most)
            seen.update(walked)
        for _ in range((2 * len(present) + 1) * (len(present) // window + 2)):
            sweep, walked = tick(sweep, present, most=most)
            seen.update(walked)
        assert seen == present
        assert [tick(sweep, present, most=most)[1] for _ in sweep.windows] == [[] for _ in sweep.windows]
