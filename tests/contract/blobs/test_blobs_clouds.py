"""What the clouds' stores alone have: buckets, credentials, clients, unfinished uploads, forks."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import google.cloud
import pytest
from blob_servers import BUCKET, KEY_ID, BlobServer, gcs_client, s3_client, s3_environment
from standins import free_ports

from docgen_core.blobs import open_blobs
from docgen_core.blobs.gs import GSBlobStore
from docgen_core.blobs.objects import ObjectStore, Patience
from docgen_core.blobs.s3 import S3BlobStore
from docgen_core.errors import BlobExists, DocgenError, MissingExtra, StorageFailed, UsageError

IMPATIENT = Patience(tries=2, first_wait_seconds=0.01, longest_wait_seconds=0.02, connect_seconds=1.0)
CLOUDS = {"s3": "s3_ministack", "gs": "gcs_fake"}
PART_BYTES = 5 << 20


def reach(server: BlobServer, monkeypatch: pytest.MonkeyPatch) -> BlobServer:
    """Point this process's clients at the server, as a user would."""
    for name, text in server.environment.items():
        monkeypatch.setenv(name, text)
    return server


@pytest.fixture(params=CLOUDS)
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> BlobServer:
    return reach(request.getfixturevalue(CLOUDS[request.param]), monkeypatch)


@pytest.fixture
def seaweed(s3_seaweed: BlobServer, monkeypatch: pytest.MonkeyPatch) -> BlobServer:
    return reach(s3_seaweed, monkeypatch)


def one_line(error: DocgenError) -> str:
    assert "\n" not in str(error)
    return str(error)


def test_a_store_is_opened_again_by_its_uri(server: BlobServer) -> None:
    store = open_blobs(f"{server.scheme}://{BUCKET}/opened/here/")
    store.put("a/b", b"x")
    assert open_blobs(store.uri).get("a/b") == b"x"
    assert [info.key for info in open_blobs(f"{server.scheme}://{BUCKET}").iter_keys("opened/")] == ["opened/here/a/b"]
    store.close()
    assert store.get("a/b") == b"x", "a store that was closed opens its client anew"


def test_another_process_opens_it_by_its_uri(server: BlobServer) -> None:
    store = open_blobs(f"{server.scheme}://{BUCKET}/processes")
    program = f"from docgen_core.blobs import open_blobs; open_blobs({store.uri!r}).put('a', b'x', create_only=True)"
    subprocess.run([sys.executable, "-c", program], check=True)
    with pytest.raises(BlobExists):
        store.put("a", b"y", create_only=True)


def test_a_region_is_part_of_the_uri(s3_ministack: BlobServer, monkeypatch: pytest.MonkeyPatch) -> None:
    reach(s3_ministack, monkeypatch)
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    store = open_blobs(f"s3://{BUCKET}/regions?region=ap-northeast-1")
    assert store.uri == f"s3://{BUCKET}/regions?region=ap-northeast-1"
    store.put("a", b"x")
    assert store.get("a") == b"x"


@pytest.mark.parametrize(
    "uri",
    [
        *("s3://", "s3:///x", "s3://UPPER/x", "s3://a", "s3://user@bucket/x", "s3://bucket:80/x", "s3://bucket/../x"),
        *("s3://bucket/a//b", "s3://bucket/x?regoin=here", "s3://bucket/x?region=", "gs://bucket/x?region=here"),
        *("gs://", "gs://bucket/.tmp"),
    ],
)
def test_what_names_no_bucket_is_refused_in_one_line(uri: str) -> None:
    with pytest.raises(UsageError) as refused:
        open_blobs(uri)
    one_line(refused.value)


@pytest.mark.parametrize("uri", ["s3://bucket/x", "gs://bucket/x"])
def test_another_clouds_client_is_refused(uri: str) -> None:
    with pytest.raises(UsageError, match="its client is"):
        open_blobs(uri, client=object())


def test_a_client_that_is_handed_in_is_used_and_stays_open(server: BlobServer) -> None:
    client = {"s3": s3_client, "gs": gcs_client}[server.scheme](server.port)
    store = open_blobs(f"{server.scheme}://{BUCKET}/handed", client=client)
    store.put("a", b"x")
    store.close()
    assert open_blobs(store.uri, client=client).get("a") == b"x"


@pytest.mark.parametrize(("scheme", "module", "extra"), [("s3", "boto3", "aws"), ("gs", "google.cloud.storage", "gcp")])
def test_a_cloud_that_is_not_installed_names_the_install(
    scheme: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, f"docgen_core.blobs.{scheme}")
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delattr(google.cloud, "storage")
    with pytest.raises(MissingExtra, match=rf"pip install 'docgen\[{extra}\]'"):
        open_blobs(f"{scheme}://bucket/x")


def test_opening_a_folder_loads_no_cloud(tmp_path: Any) -> None:
    program = (
        f"import sys; from docgen_core.blobs import open_blobs; open_blobs({str(tmp_path)!r});"
        "sys.exit(bool({'boto3', 'google.cloud.storage'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_bucket_that_is_not_there_is_told(server: BlobServer) -> None:
    store = open_blobs(f"{server.scheme}://no-such-bucket-here/x")
    asks = [
        lambda: store.put("a", b""),
        lambda: store.put("a", bytes(17 << 20), create_only=True),
        lambda: store.get("a"),
        lambda: store.exists("a"),
        lambda: store.open("a"),
        lambda: list(store.iter_keys()),
        lambda: list(store.iter_prefixes()),
    ]
    for ask in asks:
        with pytest.raises(StorageFailed, match="there is no bucket 'no-such-bucket-here'") as failed:
            ask()
        one_line(failed.value)


@pytest.mark.parametrize("make", [S3BlobStore, GSBlobStore])
def test_a_server_that_is_out_of_reach_is_told(make: type[ObjectStore], monkeypatch: pytest.MonkeyPatch) -> None:
    (port,) = free_ports(1)
    for name, text in {**s3_environment(port), "STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{port}"}.items():
        monkeypatch.setenv(name, text)
    store = make(BUCKET, "x", patience=IMPATIENT)
    with pytest.raises(StorageFailed, match="try later") as failed:
        store.put("a", b"x")
    one_line(failed.value)


@pytest.mark.parametrize("make", [S3BlobStore, GSBlobStore])
def test_an_address_that_is_none_is_told(make: type[ObjectStore], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {
        **s3_environment(1),
        "AWS_ENDPOINT_URL_S3": "nowhere",
        "STORAGE_EMULATOR_HOST": "nowhere",
    }.items():
        monkeypatch.setenv(name, text)
    with pytest.raises(UsageError, match=r"correct (AWS_ENDPOINT_URL_S3|STORAGE_EMULATOR_HOST)") as refused:
        make(BUCKET, "x", patience=IMPATIENT).get("a")
    one_line(refused.value)


@pytest.mark.parametrize("make", [S3BlobStore, GSBlobStore])
def test_nobody_is_asked_to_log_in_by_a_traceback(make: type[ObjectStore], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in s3_environment(1).items():
        monkeypatch.setenv(name, text)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/key.json")
    with pytest.raises(UsageError, match="log in") as refused:
        make(BUCKET, "x", patience=IMPATIENT).get("a")
    one_line(refused.value)


def test_a_forked_process_makes_its_own_client(server: BlobServer) -> None:
    store = open_blobs(f"{server.scheme}://{BUCKET}/forked")
    store.put("a", b"parent")
    child = os.fork()
    if not child:
        code = 1
        try:
            store.put("b", b"child", create_only=True)
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (store.get("a"), store.get("b")) == (b"parent", b"child")


def test_a_client_that_was_handed_in_is_not_used_across_a_fork(s3_ministack: BlobServer) -> None:
    store = S3BlobStore(BUCKET, "forked", client=s3_client(s3_ministack.port))
    child = os.fork()
    if not child:
        code = 1
        try:
            store.get("a")
        except UsageError as refused:
            code = 0 if "forked" in str(refused) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_console_s_folders_are_no_blobs(server: BlobServer) -> None:
    make = {"s3": s3_client, "gs": gcs_client}[server.scheme]
    client = make(server.port)
    for name in ("consoles/", "consoles/a/"):
        if server.scheme == "s3":
            client.put_object(Bucket=BUCKET, Key=name, Body=b"")
        else:
            client.bucket(BUCKET).blob(name).upload_from_string(b"")
    store = open_blobs(f"{server.scheme}://{BUCKET}/consoles")
    store.put("a/b", b"")
    assert [info.key for info in store.iter_keys()] == ["a/b"]


def test_an_upload_that_was_never_finished_is_listed_and_collected(s3_ministack: BlobServer) -> None:
    client = s3_client(s3_ministack.port)
    store = S3BlobStore(BUCKET, "unfinished", client=client, page_keys=2)
    begun = time.time()
    for name in ("unfinished/a b", "unfinished/c?d", "unfinished/e", "elsewhere/f"):
        upload = client.create_multipart_upload(Bucket=BUCKET, Key=name)["UploadId"]
        client.upload_part(Bucket=BUCKET, Key=name, UploadId=upload, PartNumber=1, Body=bytes(PART_BYTES))
    left = list(store.iter_temporary())
    assert [temporary.name.partition("?uploadId=")[0] for temporary in left] == ["a b", "c?d", "e"]
    assert all(temporary.size == PART_BYTES and temporary.modified_at >= begun - 2 for temporary in left)
    assert list(store.iter_keys()) == []
    for temporary in left:
        store.delete_temporary(temporary.name)
        store.delete_temporary(temporary.name)
    assert list(store.iter_temporary()) == []
    with pytest.raises(UsageError, match="no unfinished upload"):
        store.delete_temporary("a")


# The second witness of S3 checks signatures and permissions. It lists by folders, not in byte order, so
# that the contract suite, which asks for the order, is not for it.


def test_signatures_are_right(seaweed: BlobServer) -> None:
    store = S3BlobStore(BUCKET, "signed/é ü+", part_bytes=PART_BYTES)
    data = bytes(PART_BYTES + 1)
    for key in ("a b/c+d", "é/𝄞", "x=y&z"):
        store.put(key, key.encode(), create_only=True)
        assert store.get(key) == key.encode()
        with pytest.raises(BlobExists):
            store.put(key, b"other", create_only=True)
        store.delete(key)
    assert store.put_same("large", data) is True
    assert store.put_same("large", data) is False
    with store.open("large") as reader:
        assert reader.read() == data
    assert [info.size for info in store.iter_keys()] == [len(data)]


def test_of_many_creators_one_wins_there_too(seaweed: BlobServer) -> None:
    store = S3BlobStore(BUCKET, "raced")

    def create(number: int) -> bool:
        try:
            store.put("x", b"%d" % number, create_only=True)
        except BlobExists:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(create, range(8))) == 1


def test_a_wrong_secret_is_told(seaweed: BlobServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    with pytest.raises(UsageError, match="does not accept these credentials") as refused:
        S3BlobStore(BUCKET, "x").put("a", b"x")
    one_line(refused.value)
    with pytest.raises(DocgenError) as refused:
        S3BlobStore(BUCKET, "x").exists("a")
    one_line(refused.value)


def test_anothers_bucket_is_told(seaweed: BlobServer) -> None:
    with pytest.raises(StorageFailed, match=r"PutObject is not allowed; docs/permissions\.md"):
        S3BlobStore(f"not-of-{KEY_ID}", "x").put("a", b"x")


def test_a_server_that_lists_out_of_order_is_refused(seaweed: BlobServer) -> None:
    store = S3BlobStore(BUCKET, "disorder")
    for key in ("a/b", "a-b"):
        store.put(key, b"")
    with pytest.raises(StorageFailed, match="lists in byte order") as refused:
        list(store.iter_keys())
    one_line(refused.value)
