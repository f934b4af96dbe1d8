"""A run's budget: each operation against each wrong precondition, replayed, and with its answer lost."""

from __future__ import annotations

import pytest

from docgen_core.errors import (
    BudgetTooLow,
    BudgetUnset,
    GrantUnknown,
    LeaseLost,
    RunUnknown,
    StorageFailed,
    UsageError,
)
from docgen_core.state.budget import (
    Budget,
    BudgetFigures,
    ExpiredGrants,
    GrantState,
    ModelUsage,
    Settlement,
    Spend,
)
from docgen_core.state.contract import RunState, UnitState

CAP = 1_000


def used(cost, calls=1):
    return {"small": ModelUsage(calls, 300 * calls, 20 * calls, cost)}


def settlement(grant_id, cost, sequence=1):
    return Settlement(grant_id, sequence, used(cost))


@pytest.fixture
def store(world):
    """A store that can be meddled with, and a run in it that may spend 1,000."""
    store = world.planned(2, meddled=True)
    store.set_budget("r", CAP)
    return store


# The cap ----------------------------------------------------------------------------------


def test_a_budget_is_absolute_and_set_again_it_stays(world, store):
    for _ in range(2):
        assert store.set_budget("r", CAP) == Budget(CAP, ExpiredGrants.CHARGED, 0)
        assert world.balance(store) == (CAP, 0)


def test_a_budget_is_raised_and_lowered_to_what_is_committed_and_open(world, store):
    assert store.open_grant("r", "w", 300, "open")
    assert store.open_grant("r", "w", 200, "spent")
    store.settle_grant("r", settlement("spent", 150))
    store.close_grant("r", "spent")
    store.set_budget("r", 5_000)
    assert world.balance(store) == (5_000 - 450, 0)
    store.set_budget("r", 450)
    assert world.balance(store) == (0, 0)
    with pytest.raises(BudgetTooLow, match=r"\$0\.000000449 is less than the \$0\.00000045 ") as refused:
        store.set_budget("r", 449)
    assert refused.value.least == 450
    assert world.balance(store) == (0, 0)
    assert store.open_grant("r", "w", 1, "one more") is None


def test_a_budget_that_is_none(store):
    for cap in (-1, 0.5, True, "1"):
        with pytest.raises(UsageError, match="whole nano-dollars"):
            store.set_budget("r", cap)


def test_a_raised_budget_covers_the_overshoot_first(world, store):
    store.open_grant("r", "w", CAP, "g")
    store.settle_grant("r", settlement("g", 1_300))
    assert world.balance(store) == (0, 300)
    store.set_budget("r", 1_200)
    assert world.balance(store) == (0, 100)
    with pytest.raises(BudgetTooLow):
        store.set_budget("r", 1_199)
    store.set_budget("r", 1_500)
    assert world.balance(store) == (200, 0)


def test_what_an_expired_grant_costs_stays_as_it_was_set(store):
    assert store.set_budget("r", CAP, expired_grants=ExpiredGrants.RETURNED).expired_grants is ExpiredGrants.RETURNED
    assert store.set_budget("r", 2 * CAP).expired_grants is ExpiredGrants.RETURNED


# Grants -----------------------------------------------------------------------------------


def test_a_grant_is_taken_from_what_is_available_and_what_is_left_comes_back(world, store):
    grant = store.open_grant("r", "w", 400, "g")
    assert (grant.amount, grant.held, grant.settled, grant.state) == (400, 400, 0, GrantState.OPEN)
    assert grant.seconds == 60 and grant.expires_at == world.wall + 60
    assert world.balance(store) == (600, 0)
    assert store.settle_grant("r", settlement("g", 150)).left == 250
    assert world.balance(store) == (600, 0)
    assert store.close_grant("r", "g") == 250
    assert world.balance(store) == (850, 0)
    (closed,) = store.grants("r")
    assert (closed.state, closed.held, closed.usage) == (GrantState.CLOSED, 150, used(150))


def test_a_grant_larger_than_any_shard_is_gathered(world, store):
    assert store.open_grant("r", "w", CAP - 1, "most")
    assert world.balance(store) == (1, 0)
    assert store.open_grant("r", "w", 2, "too much") is None
    assert store.open_grant("r", "w", 1, "the rest")
    assert world.balance(store) == (0, 0)


def test_the_same_request_is_the_same_grant_whatever_has_become_of_it(world, store):
    first = store.open_grant("r", "w", 400, "g")
    assert store.open_grant("r", "w", 400, "g") == first
    store.close_grant("r", "g")
    assert store.open_grant("r", "w", 400, "g").state is GrantState.CLOSED
    assert world.balance(store) == (CAP, 0)
    for worker, amount in (("v", 400), ("w", 401)):
        with pytest.raises(UsageError, match="a new grant needs a new id"):
            store.open_grant("r", worker, amount, "g")


def test_a_grant_of_nothing_is_wrong_use(store):
    for amount in (0, -1, 1.0, True):
        with pytest.raises(UsageError, match="whole nano-dollars"):
            store.open_grant("r", "w", amount, "g")
    with pytest.raises(UsageError, match="more than 0 seconds"):
        store.open_grant("r", "w", 1, "g", seconds=0)
    assert store.grants("r") == []


def test_an_id_that_no_store_could_keep(store):
    store.open_grant("r", "w", 1, "g")
    for name in ("", "x" * 257, "a\nb", "\ud800"):
        for refused in (
            lambda name: store.open_grant("r", "w", 1, name),
            lambda name: store.add_spend("r", name, used(1)),
            lambda name: store.quarantine_providers("r", {name: "why"}),
            lambda name: store.settle_grant("r", Settlement("g", 1, {name: ModelUsage(1)})),
        ):
            with pytest.raises(UsageError, match="printable text"):
                refused(name)


def test_any_other_id_is_kept_as_it_is(world, store):
    names = ["a/b", "..", "__x__", "日本 1", "#", "'"]
    for name in names:
        assert store.open_grant("r", "w", 5, name).id == name
        store.add_spend("r", name, {name: ModelUsage(1, 1, 1, 1)})
        store.quarantine_providers("r", {name: name})
    assert [grant.id for grant in store.grants("r")] == sorted(names)
    assert list(store.spend("r").models) == sorted(names)
    assert store.quarantined_providers("r") == {name: name for name in names}
    assert world.balance(store) == (CAP - 36, 0)


def test_a_settlement_is_booked_once_and_may_stand_for_one_that_got_lost(world, store):
    store.open_grant("r", "w", 400, "g")
    store.settle_grant("r", settlement("g", 100, sequence=1))
    later = store.settle_grant("r", Settlement("g", 3, used(250, calls=3)))
    for replayed in (settlement("g", 100, sequence=1), settlement("g", 999, sequence=3), settlement("g", 1, 2)):
        assert store.settle_grant("r", replayed) == later
    assert store.spend("r").models == used(250, calls=3)
    assert world.balance(store) == (600, 0)


def test_a_settlement_gives_an_open_grant_more_time(world, store):
    store.open_grant("r", "w", 400, "g", seconds=100)
    world.wait(90)
    assert store.settle_grant("r", settlement("g", 0)).expires_at == world.wall + 100
    world.wait(90)
    assert store.expire_grants("r") == 0
    world.wait(11)
    assert store.expire_grants("r") == 1


def test_totals_that_cannot_be_are_wrong_use(store):
    store.open_grant("r", "w", 400, "g")
    before = store.settle_grant("r", settlement("g", 100))
    for usage in (
        {"small": ModelUsage(1, 300, 20, 99)},
        {"small": ModelUsage(0, 300, 20, 100)},
        {"other": ModelUsage(1, 300, 20, 100)},
        {"small": ModelUsage(2, 300, 20, 100, 1)},
        {"small": ModelUsage(2, 300, 20, 100.0)},
        {"small": ModelUsage(2, 300, -20, 100)},
    ):
        with pytest.raises(UsageError):
            store.settle_grant("r", Settlement("g", 2, usage))
    assert store.grants("r") == [before]


def test_more_than_was_granted_is_taken_from_what_is_available_and_then_is_overshoot(world, store):
    store.open_grant("r", "w", 400, "g")
    assert store.settle_grant("r", settlement("g", 700)).held == 700
    assert world.balance(store) == (300, 0)
    store.open_grant("r", "w", 250, "other")
    store.settle_grant("r", settlement("g", 900, sequence=2))
    assert world.balance(store) == (0, 150)
    assert store.open_grant("r", "w", 1, "more") is None
    assert store.close_grant("r", "g") == 0
    assert world.balance(store) == (0, 150)
    # What comes back is owed already.
    assert store.close_grant("r", "other") == 250
    assert world.balance(store) == (100, 0)


def test_what_is_owed_meets_what_comes_back_just_before_it_is_written(world, store):
    for name, amount in (("own", 400), ("other", 600)):
        store.open_grant("r", "w", amount, name)
    peer = world.store()
    store.primitives.once_before("commit", lambda *_: peer.close_grant("r", "other"))
    store.settle_grant("r", settlement("own", 700))
    assert world.balance(store) == (300, 0)


def test_what_comes_back_meets_what_is_owed_just_before_it_is_written(world, store):
    for name, amount in (("own", 400), ("other", 600)):
        store.open_grant("r", "w", amount, name)
    peer = world.store()
    store.primitives.once_before("commit", lambda *_: peer.settle_grant("r", settlement("other", 900)))
    assert store.close_grant("r", "own") == 400
    assert world.balance(store) == (100, 0)


def test_money_that_goes_round_while_it_is_counted_is_not_missed(world, store):
    store.open_grant("r", "w", CAP, "all of it")
    peer = world.store()

    def counted_once(*_):
        store.primitives.once_before("list_entries", lambda *_: peer.close_grant("r", "all of it"))

    store.primitives.once_before("list_entries", counted_once)
    grant = store.open_grant("r", "v", 400, "g")
    # One row is counted at once.
    assert (grant is not None) == (store.primitives.available_shards > 1)


def test_a_cost_that_comes_after_closing_is_booked_all_the_same(world, store):
    store.open_grant("r", "w", 400, "g")
    store.settle_grant("r", settlement("g", 100))
    assert store.close_grant("r", "g") == 300
    late = store.settle_grant("r", settlement("g", 160, sequence=2))
    assert (late.state, late.held) == (GrantState.CLOSED, 160)
    assert store.close_grant("r", "g") == 240
    assert world.balance(store) == (840, 0)


# Expiry -----------------------------------------------------------------------------------


def test_a_dead_workers_grant_is_charged_whole_until_somebody_knows_better(world, store):
    store.open_grant("r", "dead", 400, "g")
    store.settle_grant("r", settlement("g", 50))
    assert store.expire_grants("r") == 0
    world.outlive_lease()
    assert world.store().expire_grants("r") == 1
    assert store.expire_grants("r") == 0
    assert world.balance(store) == (600, 0)
    figures = store.spend("r").budget
    assert (figures.committed, figures.charged, figures.reserved, figures.open_grants) == (400, 350, 0, 0)
    proved = store.settle_grant("r", settlement("g", 120, sequence=2))
    assert (proved.state, proved.held) == (GrantState.EXPIRED, 400)
    assert store.close_grant("r", "g") == store.close_grant("r", "g") == 280
    assert world.balance(store) == (880, 0)


def test_a_dead_workers_grant_is_returned_where_the_operator_wants_it(world, store):
    store.set_budget("r", CAP, expired_grants=ExpiredGrants.RETURNED)
    store.open_grant("r", "dead", 400, "g")
    store.settle_grant("r", settlement("g", 50))
    world.outlive_lease()
    assert store.expire_grants("r") == 1
    assert world.balance(store) == (950, 0)
    for _ in range(2):
        assert store.settle_grant("r", settlement("g", 120, sequence=2)).held == 120
        assert world.balance(store) == (880, 0)
    assert store.close_grant("r", "g") == 280
    assert world.balance(store) == (880, 0)


def test_within_the_allowed_skew_a_live_grant_is_left_alone(world):
    owner, ahead = world.planned(1, skew=60), world.store(skew=60, wall_ahead=59)
    owner.set_budget("r", CAP)
    owner.open_grant("r", "w", 10, "g")
    world.wait(59)
    assert ahead.expire_grants("r") == 0
    world.wait(3)
    assert ahead.expire_grants("r") == 1


def test_a_dead_owner_of_a_grant_whose_clock_ran_ahead_is_found_by_watching(world):
    fast, peer = world.planned(1, wall_ahead=600), world.store()
    fast.set_budget("r", CAP)
    fast.open_grant("r", "fast", 10, "g")
    assert peer.expire_grants("r") == 0
    world.wait(59)
    assert peer.expire_grants("r") == 0
    fast.settle_grant("r", settlement("g", 0))
    world.wait(2)
    assert peer.expire_grants("r") == 0
    world.outlive_lease()
    assert peer.expire_grants("r") == 1


@pytest.mark.parametrize("done", ["settled", "closed", "expired"])
def test_who_expires_with_a_stale_read_takes_nothing_from_who_was_there_before(world, store, done):
    store.open_grant("r", "w", 400, "g")
    world.outlive_lease()
    peer = world.store()
    acts = {
        "settled": lambda: peer.settle_grant("r", settlement("g", 100)),
        "closed": lambda: peer.close_grant("r", "g"),
        "expired": lambda: peer.expire_grants("r"),
    }
    store.primitives.once_before("commit", lambda *_: acts[done]())
    assert store.expire_grants("r") == 0
    (grant,) = store.grants("r")
    assert grant.state is {"settled": GrantState.OPEN, "closed": GrantState.CLOSED, "expired": GrantState.EXPIRED}[done]
    world.balance(store)


# Together with a unit ---------------------------------------------------------------------


def test_a_unit_is_done_and_its_cost_is_booked_in_one_write(world, store):
    (lease,) = store.claim_next_unit("r", "w").leases
    store.open_grant("r", "w", 400, "g")
    store.primitives.calls.clear()
    store.complete_unit(lease, world.part(lease), settlement("g", 100))
    assert [call for call in store.primitives.calls if call in ("commit", "write_units")] == ["commit"]
    assert world.unit(store, lease.index).state is UnitState.DONE
    assert store.spend("r").models == used(100)
    store.complete_unit(lease, world.part(lease), settlement("g", 100))
    assert store.spend("r").models == used(100)
    # One more cost with the same unit is booked too.
    store.complete_unit(lease, world.part(lease), settlement("g", 700, sequence=2))
    assert world.balance(store) == (300, 0)


def test_a_lost_lease_books_nothing(world, store):
    (lease,) = store.claim_next_unit("r", "slow").leases
    store.open_grant("r", "slow", 400, "g")
    peer = world.store()

    def taken_over():
        world.outlive_lease()
        assert lease.index in [given.index for given in peer.claim_next_unit("r", "peer", limit=2).leases]

    # Before the read, and between the read and the write.
    for moment in ("read_unit", "commit"):
        if moment == "commit":
            world.outlive_lease()
            (lease,) = store.claim_next_unit("r", "slow", within=[lease.index]).leases
        store.primitives.once_before(moment, lambda *_: taken_over())
        with pytest.raises(LeaseLost):
            store.complete_unit(lease, world.part(lease), settlement("g", 100))
        assert store.spend("r").models == {}
        assert world.unit(store, lease.index).owner == "peer"
    store.settle_grant("r", settlement("g", 100))
    assert store.spend("r").models == used(100)


def test_a_unit_with_the_cost_of_a_grant_that_is_none_stays_as_it_is(world, store):
    (lease,) = store.claim_next_unit("r", "w").leases
    with pytest.raises(GrantUnknown, match="has no grant 'nope'"):
        store.complete_unit(lease, world.part(lease), settlement("nope", 1))
    assert world.unit(store, lease.index).state is UnitState.RUNNING


# Spend ------------------------------------------------------------------------------------


def test_spend_without_a_cap_is_exact_and_an_unknown_cost_is_never_nothing(world):
    store = world.planned(1)
    assert store.spend("r") == Spend({}, None)
    store.add_spend("r", "u0", {"small": ModelUsage(1, 300, 2000, 602_000), "local": ModelUsage(1, 5, 5, 0)})
    for _ in range(2):
        store.add_spend("r", "u1", {"small": ModelUsage(2, 600, 20, 1, 0), "dark": ModelUsage(3, 7, 8, 5, 1)})
    spend = store.spend("r")
    assert spend.models == {
        "dark": ModelUsage(3, 7, 8, 5, 1),
        "local": ModelUsage(1, 5, 5, 0),
        "small": ModelUsage(3, 900, 2020, 602_001),
    }
    assert [used.cost for used in spend.models.values()] == [None, 0, 602_001]
    assert spend.total.cost is None and spend.total.known_cost == 602_006
    assert spend.budget is None


def test_spend_under_a_cap_shows_the_budget(store):
    store.open_grant("r", "w", 400, "g")
    store.open_grant("r", "w", 100, "h")
    store.settle_grant("r", settlement("g", 150))
    store.close_grant("r", "h")
    assert store.spend("r") == Spend(
        used(150), BudgetFigures(CAP, 600, 250, 150, 0, 0, open_grants=1, expired_grants=ExpiredGrants.CHARGED)
    )


def test_spend_from_before_there_was_a_cap_counts_against_it(world):
    store = world.planned(1)
    store.add_spend("r", "early", used(300))
    with pytest.raises(BudgetTooLow):
        store.set_budget("r", 299)
    store.set_budget("r", 1_000)
    assert world.balance(store) == (700, 0)
    store.add_spend("r", "beside", used(600))
    store.add_spend("r", "beside", used(600))
    assert world.balance(store) == (100, 0)
    store.add_spend("r", "beyond", used(150))
    assert world.balance(store) == (0, 50)


@pytest.mark.parametrize("moment", ["read_entries", "commit"])
def test_a_cap_and_a_spend_that_do_not_see_each_other_come_out_right(world, moment):
    spending = world.planned(1, meddled=True)
    spending.primitives.once_before(moment, lambda *_: world.store().set_budget("r", 1_000))
    spending.add_spend("r", "e", used(300))
    assert world.balance(spending) == (700, 0)


def test_grants_by_their_states_in_order(world, store):
    for name in ("b", "c", "a"):
        store.open_grant("r", "w", 10, name)
    store.close_grant("r", "b")
    assert [grant.id for grant in store.grants("r")] == ["a", "b", "c"]
    assert [grant.id for grant in store.grants("r", {GrantState.OPEN})] == ["a", "c"]


# Quarantine -------------------------------------------------------------------------------


def test_quarantine_is_a_union_that_an_operator_lifts(world, store):
    store.quarantine_providers("r", {"a/small": "401"})
    world.store().quarantine_providers("r", {"b": "no such model", "a/small": "403"})
    store.quarantine_providers("r", {})
    assert store.quarantined_providers("r") == {"a/small": "401", "b": "no such model"}
    assert store.lift_quarantine("r", "a/small")
    assert not store.lift_quarantine("r", "a/small")
    assert not store.lift_quarantine("r", "never there")
    assert world.store().quarantined_providers("r") == {"b": "no such model"}
    store.quarantine_providers("r", {"a/small": "quota gone"})
    assert store.quarantined_providers("r")["a/small"] == "quota gone"


def test_two_who_quarantine_at_once_keep_both(world, store):
    peer = world.store()
    store.primitives.once_before("commit", lambda *_: peer.quarantine_providers("r", {"a": "first", "b": "peer's"}))
    store.quarantine_providers("r", {"a": "second", "c": "own"})
    assert store.quarantined_providers("r") == {"a": "first", "b": "peer's", "c": "own"}


# What is not there ------------------------------------------------------------------------

OPERATIONS = {
    "set_budget": lambda store, run: store.set_budget(run, 5),
    "open_grant": lambda store, run: store.open_grant(run, "w", 5, "g"),
    "settle_grant": lambda store, run: store.settle_grant(run, settlement("g", 1)),
    "close_grant": lambda store, run: store.close_grant(run, "g"),
    "expire_grants": lambda store, run: store.expire_grants(run),
    "grants": lambda store, run: store.grants(run),
    "add_spend": lambda store, run: store.add_spend(run, "e", used(1)),
    "spend": lambda store, run: store.spend(run),
    "quarantine_providers": lambda store, run: store.quarantine_providers(run, {"a": "b"}),
    "quarantined_providers": lambda store, run: store.quarantined_providers(run),
    "lift_quarantine": lambda store, run: store.lift_quarantine(run, "a"),
}


def test_a_run_that_is_not_there(world):
    store = world.store()
    for operation in OPERATIONS.values():
        with pytest.raises(RunUnknown):
            operation(store, "nope")


def test_a_grant_that_is_not_there_and_a_run_without_a_budget(world, store):
    for operation in ("settle_grant", "close_grant"):
        with pytest.raises(GrantUnknown):
            OPERATIONS[operation](store, "r")
    bare = world.planned(1, run_id="bare")
    with pytest.raises(BudgetUnset, match="set one first"):
        bare.open_grant("bare", "w", 5, "g")
    assert bare.expire_grants("bare") == 0 and bare.grants("bare") == []


def test_runs_have_budgets_of_their_own(world, store):
    other = world.planned(1, run_id="r-2")
    other.set_budget("r-2", 50)
    store.open_grant("r", "w", 400, "g")
    assert other.grants("r-2") == []
    assert world.balance(other, "r-2") == (50, 0)


@pytest.mark.parametrize("end", ["cancelled", "completed"])
def test_money_is_booked_whatever_has_become_of_the_run(world, store, end):
    store.open_grant("r", "w", 400, "g")
    if end == "completed":
        world.finish(store)
        store.begin_finalize("r")
        assert store.complete_run("r", "root").state is RunState.COMPLETED
    else:
        store.cancel("r")
    store.settle_grant("r", settlement("g", 100))
    assert store.close_grant("r", "g") == 300
    assert world.balance(store) == (900, 0)


# Lost answers: the write happened, the answer did not come, the call is made again ----------

CALLS = {
    "set_budget": (lambda store: store.set_budget("r", 2 * CAP), (1_600, 0)),
    "open_grant": (lambda store: store.open_grant("r", "w", 300, "h"), (300, 0)),
    "open_grant, gathered": (lambda store: store.open_grant("r", "w", 600, "h"), (0, 0)),
    "settle_grant": (lambda store: store.settle_grant("r", settlement("g", 100)), (600, 0)),
    "settle_grant, above": (lambda store: store.settle_grant("r", settlement("g", 500)), (500, 0)),
    "settle_grant, beyond": (lambda store: store.settle_grant("r", settlement("g", 1_100)), (0, 100)),
    "close_grant": (lambda store: store.close_grant("r", "g"), (CAP, 0)),
    "add_spend": (lambda store: store.add_spend("r", "e", used(100)), (500, 0)),
    "quarantine": (lambda store: store.quarantine_providers("r", {"a": "b"}), (600, 0)),
    "lift": (lambda store: store.lift_quarantine("r", "z"), (600, 0)),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_lost_answer_costs_nothing(world, store, call):
    operation, balance = CALLS[call]
    store.open_grant("r", "w", 400, "g")
    store.quarantine_providers("r", {"z": "z"})
    store.primitives.lose_answer("commit")
    with pytest.raises(StorageFailed):
        operation(store)
    after = (store.grants("r"), store.spend("r"), store.quarantined_providers("r"))
    first = operation(store)
    assert operation(store) == first
    assert (store.grants("r"), store.spend("r"), store.quarantined_providers("r")) == after
    assert world.balance(store) == balance


def test_a_lost_answer_to_completing_with_a_settlement(world, store):
    (lease,) = store.claim_next_unit("r", "w").leases
    store.open_grant("r", "w", 400, "g")
    store.primitives.lose_answer("commit")
    with pytest.raises(StorageFailed):
        store.complete_unit(lease, world.part(lease), settlement("g", 500))
    store.complete_unit(lease, world.part(lease), settlement("g", 500))
    assert store.progress("r").done == 1 and store.spend("r").models == used(500)
    assert world.balance(store) == (500, 0)


def test_a_lost_answer_to_expiring(world, store):
    store.set_budget("r", CAP, expired_grants=ExpiredGrants.RETURNED)
    for name in ("g", "h"):
        store.open_grant("r", "w", 400, name)
    world.outlive_lease()
    store.primitives.lose_answer("commit")
    with pytest.raises(StorageFailed):
        store.expire_grants("r")
    assert store.expire_grants("r") == 1
    assert world.balance(store) == (CAP, 0)
