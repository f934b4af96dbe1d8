"""The fleet that configuration chooses runs real workers on the stores it was given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docgen_assets.fleet import FleetKind, open_fleet, work_command

if TYPE_CHECKING:
    from tests.assets.conftest import Location

RUN = "invoices-00000-00003"


def test_workers_on_a_sealed_run_leave_by_themselves_and_cleanly(made: Location):
    stores = made.stores
    fleet = open_fleet(FleetKind.local, work_command([RUN], state=stores["state"], blobs=stores["blobs"]))
    try:
        fleet.start(2)
        assert fleet.wait() == (0, 0)
    finally:
        fleet.stop()
    assert fleet.poll() == 0
