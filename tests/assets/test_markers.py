"""New markers are found whatever their names, with a cursor of fixed size and bounded looking."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from docgen_assets.markers import BUCKETS, Cursor, walk

MOST_A_TICK = 40


def tick(cursor: Cursor, present: set[str], *, most: int = MOST_A_TICK) -> tuple[Cursor, list[str]]:
    """One tick as the sensor does it: the cursor goes through text, and the walk is left half way."""
    walked = []
    for run_id in walk(cursor, sorted(present)):
        if len(walked) == most:
            break
        walked.append(run_id)
    return Cursor.load(cursor.dump()), walked


def everything(present: set[str]) -> Cursor:
    """A cursor that knows all of these."""
    cursor = Cursor()
    assert list(walk(cursor, sorted(present)))
    return cursor


def test_a_new_run_among_ten_thousand_is_seen_at_once_wherever_it_sorts():
    present = {f"run-{number:05d}" for number in range(10_000)}
    cursor = everything(present)
    for newcomer in ("a-first-in-order", "run-05000x", "zzz-last-in-order"):
        present.add(newcomer)
        cursor, walked = tick(cursor, present, most=3 * 10_000 // BUCKETS)
        assert newcomer in walked
    assert tick(cursor, present)[1] == []


def test_the_cursor_stays_small():
    cursor = everything({f"run-{number:05d}" for number in range(10_000)})
    assert len(cursor.dump()) < 2_000


def test_a_run_that_must_be_looked_at_again_is_and_starves_no_other():
    cursor = Cursor()
    seen: list[str] = []
    for _ in range(4):
        for run_id in walk(cursor, ["held-up", "ready"]):
            cursor.again = run_id == "held-up" or cursor.again
            seen.append(run_id)
    assert seen.count("held-up") == 4
    assert seen.count("ready") == 1


def test_a_removed_marker_brings_only_its_bucket_up_again():
    present = {f"run-{number}" for number in range(2_000)}
    cursor = everything(present)
    walked = list(walk(cursor, sorted(present - {"run-7"})))
    assert len(walked) < 2_000 / BUCKETS * 4


names = st.text(alphabet="abc019-", min_size=1, max_size=6)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sets(names, max_size=6), max_size=8), st.integers(1, 5))
def test_every_run_that_stays_is_seen_however_small_the_ticks(arrivals: list[set[str]], most: int):
    cursor, present, seen = Cursor(), set[str](), set[str]()
    for arrived in arrivals:
        present |= arrived
        cursor, walked = tick(cursor, present, most=most)
        seen.update(walked)
    for _ in range(2 * len(present) + 1):
        cursor, walked = tick(cursor, present, most=most)
        seen.update(walked)
    assert seen == present
    assert tick(cursor, present, most=most)[1] == []
