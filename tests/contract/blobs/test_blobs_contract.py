"""What every blob store promises."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from docgen_core.blobs.contract import BlobStore
from docgen_core.blobs.memory import MemoryBlobStore
from docgen_core.errors import BlobExists, BlobMissing, StorageFailed, UsageError

NO_KEYS = [
    *(
        "",
        "/",
        "/a",
        "a/",
        "a//b",
        ".",
        "..",
        "a/../b",
        "../a",
        "a/.",
        "a/..",
        "./a",
        "a\\b",
        "a\nb",
        "a\x00b",
        "a\x7f",
    ),
    *(".tmp", ".tmp/x", "a/" + "b" * 256, "/".join(["abcdefgh"] * 200)),
]

SEGMENTS = st.text("ab-.0é", min_size=1, max_size=3).filter(lambda text: text not in (".", ".."))
KEYS = st.lists(st.lists(SEGMENTS, min_size=1, max_size=3).map("/".join), max_size=12, unique=True)


LARGE_BYTES = 6 << 20
"""More than the clouds' stores read at once, or send in one part here."""


def without_folders_in_the_way(keys: list[str]) -> list[str]:
    """A file system cannot hold both `a` and `a/b`; the layout of a run never asks it to."""
    return [key for key in keys if not any(other.startswith(f"{key}/") for other in keys)]


def listed(blobs: BlobStore, prefix: str = "", after: str = "") -> list[str]:
    return [info.key for info in blobs.iter_keys(prefix, after=after)]


def test_a_blob_is_read_as_it_was_put(blobs: BlobStore) -> None:
    data = bytes(range(256)) * 5_000
    blobs.put("a/b/c.bin", data)
    blobs.put("empty", b"")
    assert blobs.get("a/b/c.bin") == data
    assert blobs.size("a/b/c.bin") == len(data)
    assert blobs.get("empty") == b"" and blobs.size("empty") == 0


def test_an_opened_blob_seeks(blobs: BlobStore) -> None:
    blobs.put("a/b", b"0123456789")
    with blobs.open("a/b") as reader:
        reader.seek(-3, 2)
        assert reader.read() == b"789"
        reader.seek(0)
        assert reader.read(4) == b"0123"


def test_a_put_replaces(blobs: BlobStore) -> None:
    blobs.put("a", b"one")
    blobs.put("a", b"two, longer")
    assert blobs.get("a") == b"two, longer"


def test_an_open_reader_keeps_what_it_opened(blobs: BlobStore) -> None:
    blobs.put("a", b"one")
    with blobs.open("a") as reader:
        blobs.put("a", b"two")
        assert reader.read() == b"one"


def test_a_reader_of_a_large_blob_never_mixes_two(blobs: BlobStore) -> None:
    old, new = bytes(LARGE_BYTES), b"\1" * LARGE_BYTES
    blobs.put("a", old)
    with blobs.open("a") as reader:
        assert reader.read(1) == b"\0"
        blobs.put("a", new)
        try:
            rest = reader.read()
        except StorageFailed as refused:
            assert "read it again" in str(refused)
        else:
            assert rest == old[1:]
    with blobs.open("a") as reader:
        reader.seek(-9, 2)
        assert (reader.tell(), reader.read()) == (LARGE_BYTES - 9, new[-9:])
        reader.seek(3)
        assert reader.read() == new[3:]


def test_a_reader_of_a_large_blob_does_not_mind_the_same_bytes_again(blobs: BlobStore) -> None:
    data = random.Random(1).randbytes(LARGE_BYTES)
    blobs.put("a", data)
    with blobs.open("a") as reader:
        assert reader.read(10) == data[:10]
        blobs.put("a", data)
        assert reader.read() == data[10:]


def test_a_large_blob_is_created_once(blobs: BlobStore) -> None:
    data = random.Random(2).randbytes(LARGE_BYTES)
    assert blobs.put_same("a", data) is True
    assert blobs.put_same("a", data) is False
    with pytest.raises(BlobExists):
        blobs.put("a", data[::-1], create_only=True)
    assert blobs.get("a") == data
    assert blobs.size("a") == LARGE_BYTES


def test_a_create_only_put_never_replaces(blobs: BlobStore) -> None:
    blobs.put("a/b", b"one", create_only=True)
    with pytest.raises(BlobExists) as refused:
        blobs.put("a/b", b"two", create_only=True)
    assert refused.value.key == "a/b"
    assert blobs.get("a/b") == b"one"


def test_of_many_creators_one_wins(blobs: BlobStore) -> None:
    start = threading.Barrier(8)

    def create(number: int) -> int | None:
        start.wait()
        try:
            blobs.put("x/y/z", b"%d" % number, create_only=True)
        except BlobExists:
            return None
        return number

    with ThreadPoolExecutor(8) as pool:
        winners = [number for number in pool.map(create, range(8)) if number is not None]
    assert len(winners) == 1
    assert blobs.get("x/y/z") == b"%d" % winners[0]


def test_putting_the_same_again_is_fine_and_other_bytes_are_not(blobs: BlobStore) -> None:
    assert blobs.put_same("a", b"one") is True
    assert blobs.put_same("a", b"one") is False
    with pytest.raises(BlobExists):
        blobs.put_same("a", b"two")
    assert blobs.get("a") == b"one"


def test_what_is_not_there_is_missing(blobs: BlobStore) -> None:
    blobs.put("a/b", b"x")
    for key in ("a/c", "a", "b", "a/b/c"):
        for ask in (blobs.get, blobs.open, blobs.size):
            with pytest.raises(BlobMissing) as missing:
                ask(key)
            assert missing.value.key == key
        assert not blobs.exists(key)
    assert blobs.exists("a/b")


def test_a_deleted_blob_is_gone_and_may_be_deleted_again(blobs: BlobStore) -> None:
    blobs.put("a/b", b"x")
    blobs.delete("a/b")
    blobs.delete("a/b")
    blobs.delete("never/was")
    assert not blobs.exists("a/b")
    assert listed(blobs) == []
    blobs.put("a/b", b"y", create_only=True)


@pytest.mark.parametrize("key", NO_KEYS)
def test_a_key_cannot_leave_the_root(blobs: BlobStore, key: str) -> None:
    for ask in (blobs.get, blobs.open, blobs.size, blobs.delete, lambda k: blobs.put(k, b"x")):
        with pytest.raises(UsageError):
            ask(key)
    assert listed(blobs) == []


@pytest.mark.parametrize("prefix", ["/", "/a", "..", "../", "a/../", "a//b", "a\\", ".tmp/"])
def test_neither_can_a_listing(blobs: BlobStore, prefix: str) -> None:
    with pytest.raises(UsageError):
        list(blobs.iter_keys(prefix))
    with pytest.raises(UsageError):
        list(blobs.iter_prefixes(prefix))


def test_keys_come_in_the_order_of_whole_keys_not_of_folders(blobs: BlobStore) -> None:
    keys = ["a-b", "a.b", "a/b", "a/b.c", "a0", "aa/a", "B/a", "é/x", "𝄞", "z"]
    for key in keys:
        blobs.put(key, key.encode())
    assert listed(blobs) == sorted(keys)
    assert [info.size for info in blobs.iter_keys()] == [len(key.encode()) for key in sorted(keys)]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(keys=KEYS, probe=st.lists(SEGMENTS, min_size=1, max_size=3).map("/".join), cut=st.integers(0, 6))
def test_any_listing_is_a_range_of_the_sorted_keys(blobs: BlobStore, keys: list[str], probe: str, cut: int) -> None:
    for key in listed(blobs):
        blobs.delete(key)
    keys = without_folders_in_the_way(keys)
    model = MemoryBlobStore()
    for key in keys:
        blobs.put(key, b"")
        model.put(key, b"")
    prefix = probe[:cut].rstrip(".") if probe[:cut].rpartition("/")[2] in (".", "..") else probe[:cut]
    assert listed(blobs, prefix) == sorted(key for key in keys if key.startswith(prefix))
    assert listed(blobs, prefix, after=probe) == sorted(key for key in keys if key.startswith(prefix) and key > probe)
    for delimiter in ("/", "-"):
        assert list(blobs.iter_prefixes(prefix, delimiter=delimiter)) == list(
            model.iter_prefixes(prefix, delimiter=delimiter)
        )


def test_listing_by_delimiter_gives_each_continuation_once(blobs: BlobStore) -> None:
    for key in ("runs/r1/plan.json", "runs/r1/golden/a", "runs/r10/plan.json", "runs/note", "sealed/r1", "top"):
        blobs.put(key, b"")
    assert list(blobs.iter_prefixes()) == ["runs/", "sealed/"]
    assert list(blobs.iter_prefixes("runs/")) == ["runs/r1/", "runs/r10/"]
    assert list(blobs.iter_prefixes("runs/r1")) == ["runs/r1/", "runs/r10/"]
    assert list(blobs.iter_prefixes("runs/r1/")) == ["runs/r1/golden/"]
    assert list(blobs.iter_prefixes("absent/")) == []
    blobs.delete("sealed/r1")
    assert list(blobs.iter_prefixes()) == ["runs/"]


def test_a_listing_survives_what_happens_meanwhile(blobs: BlobStore) -> None:
    for number in range(10):
        blobs.put(f"d{number}/x", b"")
    listing = blobs.iter_keys()
    assert next(listing).key == "d0/x"
    blobs.delete("d5/x")
    blobs.put("d9/y", b"")
    assert {"d1/x", "d9/x"} <= {info.key for info in listing}


def test_puts_and_deletes_at_once_lose_nothing(blobs: BlobStore) -> None:
    def come_and_go(number: int) -> None:
        for _ in range(50):
            blobs.put(f"a/b/{number}", b"x")
            assert blobs.get(f"a/b/{number}") == b"x"
            blobs.delete(f"a/b/{number}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(come_and_go, range(4)))
    assert listed(blobs) == []


def test_finished_puts_leave_nothing_temporary(blobs: BlobStore) -> None:
    blobs.put("a", b"one")
    with pytest.raises(BlobExists):
        blobs.put("a", b"two", create_only=True)
    assert list(blobs.iter_temporary()) == []
