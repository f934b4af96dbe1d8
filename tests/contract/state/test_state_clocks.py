"""What a store tells of its own clock: enough to warn of a machine's that is off, and nothing else."""

from __future__ import annotations

import time
from contextlib import closing

import pytest

from docgen_core.state.clocks import ClockOffset
from docgen_core.state.settings import Settings
from docgen_core.state.store import SegmentStore


@pytest.fixture
def offset(worlds):
    """The offset that a machine sees whose clock is ahead of the true time by so many seconds."""

    def seen(ahead, *, skew):
        with closing(worlds.new()) as world:
            primitives = world.store().primitives
            settings = Settings(skew_seconds=skew)
            return SegmentStore(primitives, settings, uri="test", clock=lambda: time.time() + ahead).clock_offset()

    return seen


def test_a_clock_that_is_minutes_off_is_told_in_one_line_and_one_that_is_right_is_not(offset, worlds):
    if worlds.backend == "memory":
        assert offset(300, skew=60) is None, "it has no clock but ours"
        return
    right, fast, slow = offset(0, skew=60), offset(300, skew=60), offset(-300, skew=60)
    assert right.complaint is None
    assert "s ahead of the state store's, by more than 30 s" in fast.complaint
    assert "s behind the state store's, by more than 30 s" in slow.complaint
    assert "\n" not in fast.complaint + slow.complaint
    assert 150 < fast.seconds < 302 and -302 < slow.seconds < -150


@pytest.mark.parametrize("skew", [0.0, 3.0, 60.0, 1200.0])
def test_it_is_told_beyond_half_of_the_allowed_skew_and_of_what_can_be_measured(skew):
    bound = {0.0: 2.0, 3.0: 2.0, 60.0: 30.0, 1200.0: 600.0}[skew]
    for sign in (1, -1):
        within, beyond = sign * bound, sign * (bound + 0.5)
        assert ClockOffset.seen(within, 0.0, within, skew_seconds=skew).complaint is None
        assert ClockOffset.seen(beyond, 0.0, beyond, skew_seconds=skew).complaint


def test_an_answer_that_took_long_is_no_clock_that_is_off():
    assert ClockOffset.seen(100.0, 130.0, 160.0, skew_seconds=0).seconds == 0
    assert ClockOffset.seen(100.0, 90.0, 160.0, skew_seconds=0).seconds == 10
    assert ClockOffset.seen(100.0, 170.0, 160.0, skew_seconds=0).seconds == -10


def test_a_look_at_the_clock_leaves_nothing_behind(world, tmp_path):
    store = world.planned(2)
    before = sorted(tmp_path.rglob("*")), store.units("r"), store.list_runs()
    store.clock_offset()
    assert (sorted(tmp_path.rglob("*")), store.units("r"), store.list_runs()) == before
