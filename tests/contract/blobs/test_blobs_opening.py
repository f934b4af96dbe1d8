"""Opening a blob store by its URI."""

from __future__ import annotations

from pathlib import Path

import pytest

from docgen_core.blobs import open_blobs
from docgen_core.errors import UsageError


@pytest.mark.parametrize("form", ["bare", "relative", "uri"])
def test_a_folder_is_opened_by_path_or_uri(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "with space"
    uri = {"bare": str(folder), "relative": "with space", "uri": folder.as_uri()}[form]
    store = open_blobs(uri)
    monkeypatch.chdir("/")
    store.put("a", b"x")
    assert (folder / "a").read_bytes() == b"x"
    assert open_blobs(store.uri).get("a") == b"x"


def test_memory_is_the_same_by_the_same_name() -> None:
    open_blobs("memory://one").put("a", b"x")
    assert open_blobs("memory://one").get("a") == b"x"
    assert not open_blobs("memory://two").exists("a")


def test_opening_and_reading_write_nothing(tmp_path: Path) -> None:
    store = open_blobs(str(tmp_path / "absent"))
    assert list(store.iter_keys("runs/")) == []
    assert not store.exists("a")
    assert not (tmp_path / "absent").exists()


@pytest.mark.parametrize("uri", ["", " ", "file://host/x", "file:///x?y=1", "ftp://x/y", "S3//x://"])
def test_what_names_no_store_is_refused_in_one_line(uri: str) -> None:
    with pytest.raises(UsageError) as refused:
        open_blobs(uri)
    assert "\n" not in str(refused.value)


def test_an_unknown_scheme_is_told_the_ones_there_are() -> None:
    with pytest.raises(UsageError, match="file, gs, memory, s3"):
        open_blobs("ftp://x/y")


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="not a folder"):
        open_blobs(str(tmp_path / "file"))


def test_a_client_is_refused_where_none_is_used(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="takes no client"):
        open_blobs(str(tmp_path), client=object())
