"""Run simulated fleets from the command line: one with what happened in it, or many with their figures.

python tests/simulator/fleets.py --seed 17
python tests/simulator/fleets.py --fleets 10000 --processes 2
python tests/simulator/fleets.py --fleets 100 --break "a grant closed twice is given back twice"
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path

# ruff: noqa: E402, T201  a command: the path comes first, and what it finds is printed
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "packs")]

from sim_fleet import Account, simulate_fleet, simulate_fleets
from sim_fleet_breakages import FLEET_BREAKAGES

TOLD_EACH = 500
"""Fleets between two lines of figures so far."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, help="show the fleet of this seed")
    parser.add_argument("--fleets", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--workers", type=int, default=200)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--break", dest="breakage", choices=FLEET_BREAKAGES, default="nothing")
    given = parser.parse_args()
    broken = FLEET_BREAKAGES[given.breakage]
    if given.breakage != "nothing" and given.processes > 1:
        parser.error("what is broken is broken in one process: leave --processes out")
    if given.seed is not None:
        outcome = simulate_fleet(given.seed, given.workers, broken)
        print(f"{outcome.shape}\n{outcome.billed} of {outcome.cap} nano-dollars billed: {outcome.unspent:.2%} unspent")
        print(*(f"{count} {what}" for what, count in outcome.counts.most_common()), sep=", ")
        print(*outcome.problems, sep="\n")
        return bool(outcome.problems)
    account, started = Account(), time.monotonic()
    seeds = range(given.first, given.first + given.fleets)
    for outcome in simulate_fleets(seeds, given.workers, processes=given.processes, broken=broken):
        account.add(outcome)
        if outcome.problems:
            print(f"seed {outcome.seed}: {'; '.join(outcome.problems)}", flush=True)
        if len(account.unspent) % TOLD_EACH == 0:
            print(account, flush=True)
    if given.fleets % TOLD_EACH:
        print(account)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(one.ru_utime + one.ru_stime for one in used)
    print(f"{given.workers} workers a fleet; {cpu:.0f} s of CPU, {time.monotonic() - started:.0f} s in all")
    return bool(account.red)


if __name__ == "__main__":
    sys.exit(main())
