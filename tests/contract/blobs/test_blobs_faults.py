"""What the clouds' stores make of faults: refused, asked to wait, not answered, cut off, garbled."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from blob_servers import BUCKET, BlobServer, gcs_client, s3_client
from interposer import Answer, Fault, Garbled, Interposer, Late, Lost, Short, interposed

from docgen_core.blobs.gs import GSBlobStore
from docgen_core.blobs.objects import ObjectStore, Patience
from docgen_core.blobs.s3 import S3BlobStore
from docgen_core.errors import BlobExists, DocgenError, StorageFailed, UsageError

QUICK = Patience(tries=6, first_wait_seconds=0.01, longest_wait_seconds=0.05, read_seconds=2.0)
LARGE_BYTES = 9 << 20
"""More than one request takes in either cloud: S3 in parts, Cloud Storage as a resumable upload."""
SMALL = {"patience": QUICK, "page_keys": 10, "part_bytes": 5 << 20}


@dataclass
class Cloud:
    """A store whose every request goes through `wire`."""

    store: ObjectStore
    wire: Interposer
    put: str
    """The method of its puts."""
    answer: Callable[[int, str], Answer]
    """How it words an answer: by status and reason."""


def s3_answer(status: int, code: str) -> Answer:
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code} it is</Message></Error>"
    return Answer(status, body.encode(), {"Content-Type": "application/xml"})


def gcs_answer(status: int, reason: str) -> Answer:
    error = {"code": status, "message": f"{reason} it is", "errors": [{"reason": reason, "message": reason}]}
    return Answer(status, json.dumps({"error": error}).encode(), {"Content-Type": "application/json"})


@pytest.fixture(scope="module")
def s3_wire(s3_ministack: BlobServer) -> Iterator[tuple[Interposer, Any]]:
    with interposed(s3_ministack.port) as wire:
        yield wire, s3_client(wire.port, seconds=QUICK.read_seconds)


@pytest.fixture(scope="module")
def gcs_wire(gcs_fake: BlobServer) -> Iterator[tuple[Interposer, Any]]:
    with interposed(gcs_fake.port) as wire, pytest.MonkeyPatch.context() as patch:
        # The client asks for the bucket's description by itself, to name it in traces.
        patch.setenv("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
        yield wire, gcs_client(wire.port)


_numbers = itertools.count()


@pytest.fixture
def s3(s3_wire: tuple[Interposer, Any]) -> Cloud:
    wire, client = s3_wire
    wire.forget()
    return Cloud(S3BlobStore(BUCKET, f"faults/{next(_numbers)}", client=client, **SMALL), wire, "PUT", s3_answer)


@pytest.fixture
def gcs(gcs_wire: tuple[Interposer, Any]) -> Cloud:
    wire, client = gcs_wire
    wire.forget()
    return Cloud(GSBlobStore(BUCKET, f"faults/{next(_numbers)}", client=client, **SMALL), wire, "POST", gcs_answer)


@pytest.fixture(params=["s3", "gcs"])
def cloud(request: pytest.FixtureRequest) -> Cloud:
    return request.getfixturevalue(request.param)


def conflict(cloud: Cloud) -> Answer:
    return cloud.answer(409, "ConditionalRequestConflict")


def busy(cloud: Cloud) -> Answer:
    return cloud.answer(429, "TooManyRequests")


def unavailable(cloud: Cloud) -> Answer:
    return cloud.answer(503, "ServiceUnavailable")


def told(error: DocgenError) -> str:
    assert "\n" not in str(error)
    return str(error)


STORIES: dict[str, Callable[[Cloud], list[Fault]]] = {
    "412": lambda cloud: [],
    "409 then 412": lambda cloud: [conflict(cloud)] * 3,
    "429 then 412": lambda cloud: [busy(cloud)] * 3,
    "a time-out although the write landed": lambda cloud: [Late()],
    "no answer although the write landed": lambda cloud: [Lost(), Lost()],
    "503 three times": lambda cloud: [unavailable(cloud)] * 3,
}


@pytest.mark.parametrize("story", STORIES)
def test_eight_that_publish_the_same_agree_on_one_blob(cloud: Cloud, story: str) -> None:
    cloud.wire.next(cloud.put, *STORIES[story](cloud))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: cloud.store.put_same("manifest.json", b"root"), range(8)))
    assert [(info.key, info.size) for info in cloud.store.iter_keys()] == [("manifest.json", 4)]
    assert cloud.store.get("manifest.json") == b"root"


@pytest.mark.parametrize("story", STORIES)
def test_whoever_publishes_something_else_is_refused(cloud: Cloud, story: str) -> None:
    cloud.store.put("manifest.json", b"theirs")
    cloud.wire.next(cloud.put, *STORIES[story](cloud))
    with pytest.raises(BlobExists):
        cloud.store.put_same("manifest.json", b"ours")
    assert cloud.store.get("manifest.json") == b"theirs"


@pytest.mark.parametrize("fault", [Lost(), Late()], ids=["lost", "late"])
def test_a_create_only_put_knows_its_own_blob_again(cloud: Cloud, fault: Fault) -> None:
    cloud.wire.next(cloud.put, fault)
    cloud.store.put("a", b"one", create_only=True)
    assert cloud.store.get("a") == b"one"
    assert cloud.wire.count(cloud.put) == 2


@pytest.mark.parametrize("fault", [conflict, busy], ids=["409", "429"])
def test_a_create_only_put_that_was_merely_refused_owns_nothing(cloud: Cloud, fault: Callable[[Cloud], Answer]) -> None:
    cloud.store.put("a", b"one")
    cloud.wire.next(cloud.put, fault(cloud))
    with pytest.raises(BlobExists):
        cloud.store.put("a", b"one", create_only=True)


@pytest.mark.parametrize("fault", [busy, unavailable, lambda cloud: Lost()], ids=["429", "503", "lost"])
def test_what_never_gets_better_ends_in_one_line(cloud: Cloud, fault: Callable[[Cloud], Fault]) -> None:
    cloud.wire.next(cloud.put, *[fault(cloud)] * 20)
    with pytest.raises(StorageFailed) as failed:
        cloud.store.put("a", b"one")
    assert "try later" in told(failed.value)
    assert cloud.wire.count(cloud.put) == QUICK.tries, "somebody else tries again, too"


@pytest.mark.parametrize("fault", [Short(), Lost(), Late(), Garbled(), unavailable], ids=lambda fault: str(fault)[:9])
def test_a_read_is_whole_or_asked_again(cloud: Cloud, fault: Any) -> None:
    data = bytes(range(256)) * 1_000
    cloud.store.put("a", data)
    cloud.wire.next("GET", fault(cloud) if callable(fault) else fault)
    assert cloud.store.get("a") == data
    assert cloud.wire.count("GET") == 2


def test_a_reader_of_ranges_goes_on_after_a_fault(cloud: Cloud) -> None:
    data = bytes(range(256)) * (LARGE_BYTES // 256)
    cloud.store.put("a", data)
    with cloud.store.open("a") as reader:
        cloud.wire.next("GET", unavailable(cloud), Short(), Lost())
        assert reader.read() == data


def test_a_listing_goes_on_after_a_fault(cloud: Cloud) -> None:
    keys = [f"sealed/r{number:02d}" for number in range(25)]
    for key in keys:
        cloud.store.put(key, b"")
    before = cloud.wire.count("GET")
    cloud.wire.next("GET", None, unavailable(cloud), Short(), None)
    assert [info.key for info in cloud.store.iter_keys("sealed/")] == keys
    assert cloud.wire.count("GET") - before == 3 + 2


def test_a_listing_costs_a_request_for_each_full_page(cloud: Cloud) -> None:
    for number in range(25):
        cloud.store.put(f"sealed/r{number:02d}", b"")
        cloud.store.put(f"runs/r{number:02d}/plan.json", b"")
    for listing in (lambda: cloud.store.iter_keys("sealed/"), lambda: cloud.store.iter_prefixes("runs/")):
        before = cloud.wire.count("GET")
        assert len(list(listing())) == 25
        assert cloud.wire.count("GET") - before <= 3
    before = cloud.wire.count("GET")
    assert len(list(cloud.store.iter_keys("sealed/", after="sealed/r19"))) == 5
    assert cloud.wire.count("GET") - before == 1
    assert len(cloud.wire.seen) < 100, "a store asks more than it needs to"


def test_a_delete_whose_answer_is_lost_is_done(cloud: Cloud) -> None:
    cloud.store.put("a", b"one")
    cloud.wire.next("DELETE", Lost(), unavailable(cloud))
    cloud.store.delete("a")
    assert not cloud.store.exists("a")


def test_no_permission_is_told(cloud: Cloud) -> None:
    cloud.wire.next(cloud.put, cloud.answer(403, "AccessDenied"))
    with pytest.raises(StorageFailed, match=r"not allowed.*docs/permissions\.md") as failed:
        cloud.store.put("a", b"one")
    told(failed.value)
    assert cloud.wire.count(cloud.put) == 1


def test_credentials_that_are_not_accepted_are_told(cloud: Cloud) -> None:
    status, reason = {"PUT": (403, "InvalidAccessKeyId"), "POST": (401, "authError")}[cloud.put]
    cloud.wire.next(cloud.put, cloud.answer(status, reason))
    with pytest.raises(UsageError, match="log in") as failed:
        cloud.store.put("a", b"one")
    told(failed.value)


def test_a_refusal_nobody_foresaw_is_told_in_its_own_words(cloud: Cloud) -> None:
    cloud.wire.next(cloud.put, cloud.answer(400, "InvalidStorageClass"))
    with pytest.raises(StorageFailed, match="InvalidStorageClass") as failed:
        cloud.store.put("a", b"one")
    told(failed.value)


# S3 alone.


@pytest.mark.parametrize(
    ("status", "code", "says"),
    [
        (301, "PermanentRedirect", "another region"),
        (403, "RequestTimeTooSkewed", "clock is off"),
        (403, "SignatureDoesNotMatch", "does not accept these credentials"),
        (400, "ExpiredToken", "does not accept these credentials"),
        (404, "NoSuchBucket", "there is no bucket"),
    ],
)
def test_s3_says_what_is_wrong(s3: Cloud, status: int, code: str, says: str) -> None:
    # More than once, since a client may look for the bucket's region by itself.
    s3.wire.next("PUT", *[s3.answer(status, code)] * 3)
    with pytest.raises(DocgenError, match=says) as failed:
        s3.store.put("a", b"one")
    told(failed.value)


@pytest.mark.parametrize("code", ["SlowDown", "InternalError"])
def test_s3_is_asked_again_whatever_the_words_for_it(s3: Cloud, code: str) -> None:
    s3.wire.next("PUT", s3.answer(503, code), s3.answer(400, "RequestTimeout"))
    s3.store.put("a", b"one", create_only=True)
    assert s3.store.get("a") == b"one"


def large(cloud: Cloud) -> bytes:
    return bytes(range(256)) * (LARGE_BYTES // 256)


@pytest.mark.parametrize("fault", [Lost(), Late()], ids=["lost", "late"])
def test_an_upload_in_parts_whose_end_was_not_answered_is_its_own(s3: Cloud, fault: Fault) -> None:
    s3.wire.next("POST", None, fault)
    s3.store.put("a", large(s3), create_only=True)
    assert s3.store.get("a") == large(s3)
    assert list(s3.store.iter_temporary()) == []


def test_an_upload_in_parts_is_sent_anew_after_a_conflict(s3: Cloud) -> None:
    s3.wire.next("POST", None, s3.answer(409, "ConditionalRequestConflict"))
    s3.store.put("a", large(s3), create_only=True)
    assert s3.store.get("a") == large(s3)
    assert s3.wire.count("PUT") == 2 * 2
    assert list(s3.store.iter_temporary()) == []


def test_a_part_is_sent_again_by_itself(s3: Cloud) -> None:
    s3.wire.next("PUT", None, unavailable(s3), Lost())
    s3.store.put("a", large(s3))
    assert s3.store.get("a") == large(s3)
    assert s3.wire.count("PUT") == 2 + 2


def test_an_upload_in_parts_that_fails_is_aborted(s3: Cloud) -> None:
    s3.wire.next("PUT", None, s3.answer(403, "AccessDenied"))
    with pytest.raises(StorageFailed, match="UploadPart is not allowed"):
        s3.store.put("a", large(s3))
    assert list(s3.store.iter_temporary()) == []
    assert not s3.store.exists("a")


@pytest.mark.parametrize("fault", [unavailable, lambda cloud: Lost()], ids=["503", "lost"])
def test_a_client_that_tries_again_by_itself_is_not_outdone(s3: Cloud, fault: Callable[[Cloud], Fault]) -> None:
    store = S3BlobStore(BUCKET, "given", client=s3_client(s3.wire.port, tries=3), patience=QUICK)
    s3.wire.next("PUT", *[fault(s3)] * 20)
    with pytest.raises(StorageFailed, match="try later"):
        store.put("a", b"one")
    assert s3.wire.count("PUT") == 3


def test_what_a_client_lost_by_itself_is_known_again(s3: Cloud) -> None:
    store = S3BlobStore(BUCKET, f"given/{s3.wire.port}", client=s3_client(s3.wire.port, tries=3), patience=QUICK)
    s3.wire.next("PUT", Lost())
    store.put("a", b"one", create_only=True)
    assert store.get("a") == b"one"


# Cloud Storage alone.


def test_a_resumable_upload_carries_its_precondition(gcs: Cloud) -> None:
    gcs.store.put("a", large(gcs), create_only=True)
    assert gcs.store.get("a") == large(gcs)
    (session,) = [request.path for request in gcs.wire.seen if request.method == "POST"]
    assert "uploadType=resumable" in session and "ifGenerationMatch=0" in session
    assert gcs.wire.count("PUT") == 2


@pytest.mark.parametrize(("method", "before"), [("POST", 0), ("PUT", 1)], ids=["at its start", "at its end"])
def test_a_resumable_upload_may_be_refused(gcs: Cloud, method: str, before: int) -> None:
    gcs.wire.next(method, *[None] * before, gcs.answer(412, "conditionNotMet"))
    with pytest.raises(BlobExists):
        gcs.store.put("a", large(gcs), create_only=True)


def test_a_resumable_upload_is_sent_anew_after_a_fault(gcs: Cloud) -> None:
    gcs.wire.next("PUT", None, unavailable(gcs))
    gcs.store.put("a", large(gcs), create_only=True)
    assert gcs.store.get("a") == large(gcs)


def test_a_resumable_upload_whose_end_was_not_answered_is_its_own(gcs: Cloud) -> None:
    gcs.wire.next("PUT", None, Lost())
    gcs.wire.next("POST", None, gcs.answer(412, "conditionNotMet"))
    gcs.store.put("a", large(gcs), create_only=True)
    assert gcs.store.get("a") == large(gcs)


def test_a_rate_limit_that_calls_itself_403_is_waited_for(gcs: Cloud) -> None:
    gcs.wire.next("POST", gcs.answer(403, "rateLimitExceeded"))
    gcs.store.put("a", b"one", create_only=True)
    assert gcs.wire.count("POST") == 2
