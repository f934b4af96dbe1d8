"""Servers that speak the real protocols of DynamoDB and Firestore: one of each, for as long as the session."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock
from standins import CACHE, INSTALL_SECONDS, free_ports, running, without

DYNAMODB = "amplify-dynamodb-simulator@2.9.30"
"""The npm package that holds Amazon's DynamoDB Local; its licence forbids passing it on, so it is fetched."""

FIRESTORE = "google-cloud-cli-firestore-emulator"
"""Google's Debian package; Debian's own archive does not have it."""

FIRESTORE_MAIN = "com.google.cloud.datastore.emulator.firestore.CloudFirestore"
REGION = "eu-west-1"

BRIEF = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""For servers that live some minutes: what a JVM does for those that live for days costs more than the tests do."""


@dataclass(frozen=True)
class StateServer:
    """A server that runs, and how a process finds it."""

    port: int
    environment: Mapping[str, str]
    """What a process needs to reach it by the clients' own variables."""

    def behind(self, port: int) -> Mapping[str, str]:
        """The environment with another port in the place of this server's: of something in between."""
        return {name: text.replace(f":{self.port}", f":{port}") for name, text in self.environment.items()}


@pytest.fixture(scope="session")
def dynamodb_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StateServer]:
    """See `dynamodb_running`."""
    with dynamodb_running(tmp_path_factory.mktemp("dynamodb")) as server:
        yield server


@pytest.fixture(scope="session")
def firestore_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StateServer]:
    """See `firestore_running`."""
    with firestore_running(tmp_path_factory.mktemp("firestore")) as server:
        yield server


@contextmanager
def dynamodb_running(folder: Path) -> Iterator[StateServer]:
    """DynamoDB Local, in memory. Takes any credentials; never throttles, and never reads stale."""
    java = _program(DYNAMODB, "java", "default-jre-headless")
    emulator, (port,) = _dynamodb_emulator(), free_ports(1)
    command = [
        *(java, *BRIEF, "-Xmx512m", f"-Djava.library.path={emulator / 'DynamoDBLocal_lib'}"),
        *("-jar", str(emulator / "DynamoDBLocal.jar"), "-inMemory", "-sharedDb", "-disableTelemetry"),
        *("-port", str(port)),
    ]
    with running(DYNAMODB, command, folder, lambda: _answers(port), {"LD_PRELOAD": str(_loopback_only(folder))}):
        keys = {"AWS_ACCESS_KEY_ID": "docgen", "AWS_SECRET_ACCESS_KEY": "not-a-secret", "AWS_DEFAULT_REGION": REGION}
        yield StateServer(port, {"AWS_ENDPOINT_URL_DYNAMODB": f"http://127.0.0.1:{port}", **keys})


@contextmanager
def firestore_running(folder: Path) -> Iterator[StateServer]:
    """Google's emulator of Firestore. Every project and database is there, and empty."""
    java = _program(FIRESTORE, "java", "default-jre-headless")
    (port,) = free_ports(1)
    command = [
        *(java, *BRIEF, "-Xmx768m", "-Duser.language=en", "-cp", str(_firestore_emulator()), FIRESTORE_MAIN),
        *("start", "--host=127.0.0.1", f"--port={port}"),
    ]
    with running(FIRESTORE, command, folder, lambda: _answers(port)):
        yield StateServer(port, {"FIRESTORE_EMULATOR_HOST": f"127.0.0.1:{port}"})


def _dynamodb_emulator() -> Path:
    """The folder of DynamoDB Local, fetched once a machine."""
    CACHE.mkdir(parents=True, exist_ok=True)
    home = CACHE / DYNAMODB
    with FileLock(f"{home}.lock", timeout=INSTALL_SECONDS):
        if not home.exists():
            npm = _program(DYNAMODB, "npm", "npm")
            with tempfile.TemporaryDirectory(dir=CACHE) as name:
                _run(DYNAMODB, [npm, "pack", DYNAMODB, "--silent", "--pack-destination", name])
                (archive,) = Path(name).glob("*.tgz")
                with tarfile.open(archive) as packed:
                    packed.extractall(Path(name) / "unpacked", filter="data")
                (Path(name) / "unpacked").rename(home)
    return home / "package" / "emulator"


def _loopback_only(folder: Path) -> Path:
    """A library that keeps a server on loopback which would listen on every interface of the machine."""
    library, source = folder / "loopback_bind.so", Path(__file__).with_name("loopback_bind.c")
    _run(DYNAMODB, [_program(DYNAMODB, "gcc", "gcc"), "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"])
    return library


def _firestore_emulator() -> Path:
    """The emulator's archive of classes, where its Debian package has put it."""
    listed = ""
    if shutil.which("dpkg"):
        listed = subprocess.run(["dpkg", "-L", FIRESTORE], capture_output=True, text=True, check=False).stdout
    archives = [line for line in listed.splitlines() if line.endswith("/cloud-firestore-emulator.jar")]
    if not archives:
        without(FIRESTORE, f"install Google's Debian package {FIRESTORE}")
    return Path(archives[0])


def _program(server: str, name: str, package: str) -> str:
    found = shutil.which(name)
    if found is None:
        without(server, f"there is no {name}; apt-get install {package}")
    return found


def _run(server: str, command: Sequence[str]) -> None:
    try:
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=INSTALL_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or error
        without(server, f"{command[0]} failed: {str(said).strip()[-500:]}")


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0
