"""Workers whose networks to the stores break all the time, in a cloud each: the run comes out as undisturbed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from bad_network import BadNetwork, Fault, Plan, bad_network
from blob_servers import BUCKET, BlobServer, gcs_client, s3_client
from state_servers import StateServer

from docgen_core.blobs import open_blobs
from docgen_core.blobs.contract import BlobStore
from docgen_core.canonical import sha256_hex
from docgen_core.runs.catalogue import build_catalogue_run
from docgen_core.runs.drain import work_run
from docgen_core.runs.fleet import LocalFleet
from docgen_core.runs.plan import RunRequest, create_run
from docgen_core.runs.selection import CatalogueSpec, Selection
from docgen_core.runs.verify import verify_run
from docgen_core.state import open_state, prepare_state
from docgen_core.state.contract import StateStore

FAULTS, FULL_FAULTS = 40, 1_000
"""That each store's network must have had."""
DOCUMENTS, FULL_DOCUMENTS = 20, 500
"""Of a run, one to a unit. Further runs are made until there were faults enough."""
WORKERS, FULL_WORKERS = 2, 4
SEED = 4_713
STATE_SHARE, BLOB_SHARE = 0.4, 0.2
"""Of requests that meet a fault. A call to the state is tried again for a time, one to the blobs a number of times."""
SILENT_SECONDS = 1.0
"""How long a black hole lasts. At the full figures, those of the state store last until the client gives up."""
WEIGHTS = dict.fromkeys(Fault, 6) | {Fault.SILENT: 1}
SETTINGS = "lease_seconds=20&max_attempts=1000&skew_seconds=0"


@dataclass(frozen=True)
class Cloud:
    """Both servers of one cloud, and how they are reached directly."""

    scheme: str
    state: StateServer
    blobs: BlobServer
    blob_client: Any


@pytest.fixture(params=["aws", "gcp"])
def cloud(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    names = {"aws": ("dynamodb_server", "s3_ministack"), "gcp": ("firestore_server", "gcs_fake")}[request.param]
    state, blobs = (request.getfixturevalue(name) for name in names)
    for name, value in state.environment.items():
        monkeypatch.setenv(name, value)
    connect = {"aws": s3_client, "gcp": gcs_client}[request.param]
    return Cloud({"aws": "dynamodb", "gcp": "firestore"}[request.param], state, blobs, connect(blobs.port))


@pytest.fixture(scope="module")
def documents(full_figures: bool) -> int:
    return FULL_DOCUMENTS if full_figures else DOCUMENTS


@pytest.fixture(scope="module")
def undisturbed(documents: int) -> dict[str, str]:
    """What one worker makes with nothing in between."""
    state, blobs = open_state("memory://undisturbed"), open_blobs("memory://undisturbed")
    plan(state, blobs, documents)
    assert work_run("r1", state=state, blobs=blobs, worker="here").exit_code == 0
    return digests(blobs)


def plan(state: StateStore, blobs: BlobStore, documents: int) -> None:
    """A sealed catalogue, and a run of documents over it."""
    spec = CatalogueSpec(pack="delivery_note_pack:PACK", companies=8, products=2, range_width=8)
    build_catalogue_run(state, blobs, "v1", spec)
    assert work_run("catalogue-v1", state=state, blobs=blobs, worker="here").exit_code == 0
    request = RunRequest("r1", documents, 7, Selection(), "v1", unit_size=1, pack="delivery_note_pack:PACK")
    create_run(state, blobs, request)


def digests(blobs: BlobStore) -> dict[str, str]:
    return {info.key: sha256_hex(blobs.get(info.key)) for info in blobs.iter_keys("runs/r1/")}


@pytest.mark.timeout(3_600)
def test_each_document_comes_out_once_and_the_same(
    cloud: Cloud,
    undisturbed: dict[str, str],
    documents: int,
    packs_path: Path,
    full_figures: bool,
    say: Callable[[str], None],
) -> None:
    wanted = FULL_FAULTS if full_figures else FAULTS
    for_state = Plan(SEED, STATE_SHARE, WEIGHTS, None if full_figures else SILENT_SECONDS)
    for_blobs = Plan(SEED + 1, BLOB_SHARE, WEIGHTS, SILENT_SECONDS)
    with bad_network(cloud.state.port, for_state) as state, bad_network(cloud.blobs.port, for_blobs) as blobs:
        env = {**os.environ, **cloud.state.behind(state.port), **cloud.blobs.behind(blobs.port)}
        env["PYTHONPATH"] = str(packs_path)
        while min(state.struck.total(), blobs.struck.total()) < wanted:
            made_through_bad_networks(cloud, env, undisturbed, documents, FULL_WORKERS if full_figures else WORKERS)
    for name, network in ((cloud.scheme, state), (cloud.blobs.scheme, blobs)):
        assert set(network.struck) == set(Fault)
        say(f"{name}, seed {network.plan.seed}: {told(network)}")


def made_through_bad_networks(
    cloud: Cloud, env: Mapping[str, str], undisturbed: dict[str, str], documents: int, workers: int
) -> None:
    """A run in new places, worked on by real processes, and looked at with nothing in between."""
    name = f"docgen-{uuid4().hex[:16]}"
    state_uri, blobs_uri = f"{cloud.scheme}://{name}?{SETTINGS}", f"{cloud.blobs.scheme}://{BUCKET}/{name}"
    prepare_state(state_uri)
    state, blobs = open_state(state_uri), open_blobs(blobs_uri, client=cloud.blob_client)
    plan(state, blobs, documents)
    places = ("--state", state_uri, "--blobs", blobs_uri)
    command = [sys.executable, "-m", "docgen_core.cli", "work", "r1", "--until-stdin-closes", *places]
    with LocalFleet(command, env=env) as fleet:
        fleet.start(workers)
        assert set(fleet.wait()) == {0}, "no worker gives up"
    found = verify_run("r1", blobs=blobs, state=state, deep=True)
    assert found.ok, found.findings
    made = digests(blobs)
    assert made == undisturbed
    names = [key.rpartition("/")[2] for key in made if key.endswith(".pdf")]
    assert len(names) == len(set(names)) == documents
    assert state.progress("r1").done == documents


def told(network: BadNetwork) -> str:
    struck = ", ".join(f"{count} × {fault}" for fault, count in sorted(network.struck.items()))
    return f"{network.requests} requests, {network.struck.total()} faults: {struck}"
