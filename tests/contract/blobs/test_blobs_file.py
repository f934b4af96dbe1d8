"""What files alone can get wrong: links, half writes, full disks, missing rights."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from docgen_core.blobs import file as file_store
from docgen_core.blobs.file import FileBlobStore
from docgen_core.errors import BlobMissing, StorageFailed

ORDINARY_USER = 65_534
"""The user `nobody`: tests may run as root, whom no permission stops."""


@pytest.fixture
def store(tmp_path: Path) -> FileBlobStore:
    return FileBlobStore(tmp_path / "blobs")


def test_a_linked_folder_leads_nowhere(store: FileBlobStore, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    store.put("a/b", b"x")
    (tmp_path / "blobs" / "a" / "link").symlink_to(outside)
    for ask in (store.get, store.size, store.delete, lambda key: store.put(key, b"x")):
        with pytest.raises(StorageFailed, match="symbolic link"):
            ask("a/link/secret")
    assert (outside / "secret").read_text() == "secret"
    assert [info.key for info in store.iter_keys()] == ["a/b", "a/link"]
    assert list(store.iter_keys("a/link/")) == []


def test_a_linked_file_is_listed_and_cannot_be_read_and_is_replaced_itself(
    store: FileBlobStore, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("secret")
    store.put("a", b"x")
    (tmp_path / "blobs" / "link").symlink_to(tmp_path / "secret")
    assert [info.key for info in store.iter_keys()] == ["a", "link"]
    with pytest.raises(BlobMissing):
        store.get("link")
    with pytest.raises(BlobMissing):
        store.size("link")
    store.put("link", b"mine")
    assert (tmp_path / "secret").read_text() == "secret"
    assert store.get("link") == b"mine"


def test_a_pipe_in_a_blobs_place_does_not_block(store: FileBlobStore, tmp_path: Path) -> None:
    store.put("a", b"x")
    os.mkfifo(tmp_path / "blobs" / "pipe")
    with pytest.raises(BlobMissing):
        store.get("pipe")


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    FileBlobStore(tmp_path / "link").put("a", b"x")
    assert (tmp_path / "real" / "a").read_bytes() == b"x"


def test_a_foreign_name_cannot_hide(store: FileBlobStore, tmp_path: Path) -> None:
    store.put("a/b", b"x")
    (tmp_path / "blobs" / "a" / "back\\slash").write_bytes(b"")
    (tmp_path / "blobs" / "a" / ".hidden").write_bytes(b"")
    (Path(os.fsencode(tmp_path).decode()) / "blobs" / "a" / os.fsdecode(b"\xff")).write_bytes(b"")
    assert len(list(store.iter_keys("a/"))) == 4


def test_a_key_below_a_blob_is_refused_in_one_line(store: FileBlobStore) -> None:
    store.put("a", b"x")
    with pytest.raises(StorageFailed, match="not a folder is in its way"):
        store.put("a/b", b"y")
    store.put("c/d", b"x")
    with pytest.raises(StorageFailed, match="a folder is in its way"):
        store.put("c", b"y")
    assert store.get("a") == b"x" and store.get("c/d") == b"x"


def test_a_writer_that_is_killed_leaves_a_temporary_file_and_no_blob(store: FileBlobStore, tmp_path: Path) -> None:
    program = f"""
import os, signal
from pathlib import Path
from docgen_core.blobs.file import FileBlobStore
store = FileBlobStore(Path({str(tmp_path / "blobs")!r}))
store.put("a/b", b"old")
os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
store.put("a/b", b"new, and never finished")
"""
    ended = subprocess.run([sys.executable, "-c", program], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert store.get("a/b") == b"old"
    assert [info.key for info in store.iter_keys()] == ["a/b"]
    (left,) = store.iter_temporary()
    assert left.size == len(b"new, and never finished")
    store.delete_temporary(left.name)
    store.delete_temporary(left.name)
    assert list(store.iter_temporary()) == []


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user of the machine may enter; pytest's own are the owner's alone."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_read_only_folder_gives_an_ordinary_user_one_line(open_folder: Path) -> None:
    folder = open_folder / "blobs"
    FileBlobStore(folder).put("a/b", b"x")
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    program = f"""
import os
from pathlib import Path
from docgen_core.blobs.file import FileBlobStore
from docgen_core.errors import StorageFailed
if os.geteuid() == 0:
    os.setgid({ORDINARY_USER})
    os.setuid({ORDINARY_USER})
try:
    FileBlobStore(Path({str(folder)!r})).put("a/b", b"y")
except StorageFailed as error:
    print(error)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "permission denied" in ended.stdout and ended.stdout.count("\n") == 1
    assert FileBlobStore(folder).get("a/b") == b"x"


@pytest.mark.parametrize("create_only", [False, True])
def test_a_full_disk_loses_nothing(tmp_path: Path, create_only: bool) -> None:
    program = f"""
import errno, os
from pathlib import Path
from docgen_core.blobs.file import FileBlobStore
from docgen_core.errors import StorageFailed
store = FileBlobStore(Path({str(tmp_path / "blobs")!r}))
store.put("a", b"old")
write, left = os.write, [100_000]
def full(descriptor, data):
    if left[0] <= 0:
        raise OSError(errno.ENOSPC, "No space left on device")
    left[0] -= (written := write(descriptor, data[:60_000]))
    return written
os.write = full
try:
    store.put("b" if {create_only} else "a", bytes(500_000), create_only={create_only})
except StorageFailed as error:
    print(error)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "no space is left" in ended.stdout and ended.stdout.count("\n") == 1
    store = FileBlobStore(tmp_path / "blobs")
    assert [info.key for info in store.iter_keys()] == ["a"]
    assert store.get("a") == b"old"
    assert list(store.iter_temporary()) == []


def test_a_put_survives_a_collection_of_temporary_files_of_any_age(
    store: FileBlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_folder = file_store._make_folder

    def collected(folder: Path) -> None:
        make_folder(folder)
        if folder.name == "runs":
            monkeypatch.setattr(file_store, "_make_folder", make_folder)
            for found in list(store.iter_temporary()):
                store.delete_temporary(found.name)

    for create_only in (False, True):
        monkeypatch.setattr(file_store, "_make_folder", collected)
        store.put(f"runs/{create_only}", b"whole", create_only=create_only)
        assert store.get(f"runs/{create_only}") == b"whole"
        assert list(store.iter_temporary()) == []
