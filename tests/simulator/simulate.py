"""Run schedules from the command line: one with its trace, or many with their figures.

python tests/simulator/simulate.py firestore --seed 17
python tests/simulator/simulate.py dynamodb --schedules 10000
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

# ruff: noqa: E402, T201  a command: the path comes first, and what it finds is printed
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "packs")]

from sim_breakages import BREAKAGES
from sim_schedule import Tally, simulate, simulate_many
from sim_stores import PROFILES


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("profile", choices=PROFILES)
    parser.add_argument("--seed", type=int, help="show the schedule of this seed")
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--break", dest="breakage", choices=BREAKAGES, help="break production code deliberately")
    given = parser.parse_args()
    broken = BREAKAGES[given.breakage] if given.breakage else BREAKAGES["nothing"]
    if given.seed is not None:
        result = simulate(given.profile, given.seed, broken)
        print("\n".join([str(result.shape), *result.trace, result.end, *result.problems]))
        return bool(result.problems)
    logging.disable()
    red, tally = 0, Tally()
    seeds = range(given.first, given.first + given.schedules)
    for result in simulate_many(given.profile, seeds, tally=tally, broken=broken):
        if result.problems:
            red += 1
            print(f"seed {result.seed}: {result.end}: {result.problems[0]}", flush=True)
    print(f"{given.profile}: {red} red; {tally}")
    print(", ".join(f"{count} × {fault}" for fault, count in sorted(tally.faults.items())))
    return bool(red)


if __name__ == "__main__":
    sys.exit(main())
