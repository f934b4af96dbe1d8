"""A process with nothing but a state store, for tests that need many: `state_worker.py MODE URI RUN WORKER`.

It says `ready`, waits for a line at its standard input, and does what MODE says.
"""

from __future__ import annotations

import json
import resource
import sys
import time

from docgen_core.errors import DocgenError
from docgen_core.state import open_state
from docgen_core.state.contract import Outlook, Part, RunKind, RunMarker


def say(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def plan_and_drain(store, run_id, worker):
    """Start cold with all the others, then work until the run is drained; says which units it did."""
    store.create_run(RunMarker(run_id, RunKind.DOCUMENTS, f"runs/{run_id}", {}, "digest", 320, 1, 320))
    store.mark_planned(run_id, "digest")
    done = []
    while (claim := store.claim_next_unit(run_id, worker, limit=3)).outlook is not Outlook.DRAINED:
        for lease in claim.leases:
            lease, _ = store.renew(lease)
            store.complete_unit(lease, Part("part", f"sha of {worker}", 1))
            done.append(lease.index)
        time.sleep(claim.retry_seconds)
    say(done)


def hold(store, run_id, worker):
    """Take two units and never give them back."""
    leases = store.claim_next_unit(run_id, worker, limit=2).leases
    say([lease.index for lease in leases])
    sys.stdin.read()


def fill_the_disk(store, run_id, worker):
    """Claim while no file may grow beyond a limit; says the error that ends it."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
    try:
        while store.claim_next_unit(run_id, worker, limit=50).leases:
            pass
    except DocgenError as error:
        say([type(error).__name__, str(error)])


if __name__ == "__main__":
    mode, uri, run_id, worker = sys.argv[1:]
    say("ready")
    sys.stdin.readline()
    with open_state(uri) as store:
        {"drain": plan_and_drain, "hold": hold, "fill": fill_the_disk}[mode](store, run_id, worker)
