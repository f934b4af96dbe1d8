"""Blobs as files of a folder: `runs/r1/plan.json` is that file under the root.

A put writes a file under `.tmp/` of the same root, makes it durable, and then links or renames
it to its key in one step, so that a reader sees the whole blob or none, whatever dies when.
Symbolic links below the root are never followed: they show up in listings and cannot be read.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from docgen_core.blobs.contract import BlobInfo, BlobStore, Temporary
from docgen_core.blobs.keys import TEMPORARY, check_key, check_prefix
from docgen_core.errors import BlobExists, BlobMissing, StorageFailed, UsageError

PUBLISH_TRIES = 50

_ABSENT = (errno.ENOENT, errno.ENOTDIR)

_ADVICE = {
    errno.ENOSPC: "no space is left there; free some or name another folder, then run the same command again",
    errno.EDQUOT: "the disk quota is used up; free some space or name another folder, then run the same command again",
    errno.EROFS: "the file system is read-only; name a folder that can be written",
    errno.EACCES: "permission denied; give this user the right to it or name another folder",
    errno.EPERM: "not permitted (it has to allow hard links, too); name a folder on another file system",
    errno.ENOTDIR: "something that is not a folder is in its way; name another folder",
    errno.EISDIR: "a folder is in its way; name another folder",
}


class FileBlobStore(BlobStore):
    """Blobs under one folder, which is made with the first put."""

    def __init__(self, folder: Path) -> None:
        self._root = Path(os.path.realpath(folder.absolute()))
        self._temporary = self._root / TEMPORARY
        if self._root.exists() and not self._root.is_dir():
            raise UsageError(f"blobs cannot be kept in {self._root}: it is not a folder")
        self.uri = self._root.as_uri()

    def put(self, key: str, data: bytes, *, create_only: bool = False) -> None:
        """Publish `data` under `key`, durable on return."""
        target = self._path(key)
        temporary = self._temporary / f"{os.getpid()}-{secrets.token_hex(8)}"
        with _errors_told(target):
            _make_folder(self._temporary)
            try:
                _write_durably(temporary, data)
                self._publish(temporary, data, target, create_only)
            except FileExistsError:
                raise BlobExists(key) from None
            finally:
                with contextlib.suppress(OSError):
                    temporary.unlink()

    def _publish(self, temporary: Path, data: bytes, target: Path, create_only: bool) -> None:
        for remaining in reversed(range(PUBLISH_TRIES)):
            try:
                _make_folder(target.parent)
                if create_only:
                    target.hardlink_to(temporary)
                else:
                    temporary.replace(target)
                break
            except FileNotFoundError:
                # Another process has just removed a folder, which was empty, or collected temporary files of any age.
                if not remaining:
                    raise
                if not temporary.exists():
                    _write_durably(temporary, data)
        # Without the folder the blob is gone again, too.
        with contextlib.suppress(FileNotFoundError):
            _sync_folder(target.parent)

    def get(self, key: str) -> bytes:
        """The whole blob."""
        with self.open(key) as reader:
            return reader.read()

    def open(self, key: str) -> BinaryIO:
        """A seekable reader of the blob."""
        path = self._path(key)
        with _errors_told(path, key):
            # A link or a pipe in a blob's place must neither lead elsewhere nor block.
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise BlobMissing(key)
        return io.BufferedReader(io.FileIO(descriptor, closefd=True))

    def size(self, key: str) -> int:
        """Bytes of the blob."""
        path = self._path(key)
        with _errors_told(path, key):
            found = path.lstat()
        if not stat.S_ISREG(found.st_mode):
            raise BlobMissing(key)
        return found.st_size

    def delete(self, key: str) -> None:
        """Remove the blob; a missing one is no error."""
        path = self._path(key)
        with _errors_told(path), contextlib.suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
            path.unlink()
            self._prune(path.parent)

    def _prune(self, folder: Path) -> None:
        """Remove folders that hold nothing any more: no key begins with them, and none may be in another's way."""
        with contextlib.suppress(OSError):
            while folder != self._root:
                folder.rmdir()
                folder = folder.parent

    def iter_keys(self, prefix: str = "", *, after: str = "") -> Iterator[BlobInfo]:
        """Blobs whose key starts with `prefix` and sorts behind `after`, in key order.

        Everything but a folder is listed, so that nothing foreign can hide.
        """
        head, _, _ = check_prefix(prefix).rpartition("/")
        return self._walk(f"{head}/" if head else "", prefix, after)

    def iter_prefixes(self, prefix: str = "", *, delimiter: str = "/") -> Iterator[str]:
        """The distinct continuations of `prefix` up to and with the next delimiter, in order."""
        if delimiter != "/":
            yield from self._group(prefix, delimiter)
            return
        head, _, _ = check_prefix(prefix).rpartition("/")
        for key, entry in self._entries(f"{head}/" if head else ""):
            # An empty folder is no prefix: no key begins with it.
            if entry is None and key.startswith(prefix) and next(self._walk(key, key, ""), None):
                yield key

    def iter_temporary(self) -> Iterator[Temporary]:
        """Files of puts that are under way, or whose process died."""
        with _errors_told(self._temporary), contextlib.suppress(FileNotFoundError):
            for path in sorted(self._temporary.iterdir()):
                with contextlib.suppress(FileNotFoundError):
                    found = path.lstat()
                    yield Temporary(path.name, found.st_size, found.st_mtime)

    def delete_temporary(self, name: str) -> None:
        """Remove one of `iter_temporary`; a missing one is no error."""
        path = self._temporary / check_key(name)
        with _errors_told(path):
            path.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        path = self._root / check_key(key)
        if os.path.realpath(path.parent) != str(path.parent):
            raise StorageFailed(f"blob {key!r}: {path.parent} goes through a symbolic link; remove the link")
        return path

    def _entries(self, folder: str) -> list[tuple[str, os.DirEntry[str] | None]]:
        """Keys in one folder, in the order of whole keys; a subfolder ends in '/' and has no entry."""
        path = self._root / folder
        if os.path.realpath(path) != str(path):
            return []
        try:
            with _errors_told(path), os.scandir(path) as found:
                entries = list(found)
        except StorageFailed as error:
            if isinstance(error.__cause__, OSError) and error.__cause__.errno in _ABSENT:
                return []
            raise
        keys: list[tuple[str, os.DirEntry[str] | None]] = []
        for entry in entries:
            if not folder and entry.name == TEMPORARY:
                continue
            is_folder = entry.is_dir(follow_symlinks=False)
            keys.append((f"{folder}{entry.name}/", None) if is_folder else (f"{folder}{entry.name}", entry))
        # 'a-b' sorts before 'a/b' and 'a' before both: a subfolder sorts as its name with the slash.
        return sorted(keys, key=lambda pair: pair[0])

    def _walk(self, folder: str, prefix: str, after: str) -> Iterator[BlobInfo]:
        for key, entry in self._entries(folder):
            if entry is None:
                within = key.startswith(prefix) or prefix.startswith(key)
                if within and (key > after or after.startswith(key)):
                    yield from self._walk(key, prefix, after)
            elif key.startswith(prefix) and key > after:
                # A blob that was removed since the folder was read is not there.
                with contextlib.suppress(FileNotFoundError):
                    yield BlobInfo(key, entry.stat(follow_symlinks=False).st_size)

    def _group(self, prefix: str, delimiter: str) -> Iterator[str]:
        last = ""
        for info in self.iter_keys(prefix):
            head, found, _ = info.key[len(prefix) :].partition(delimiter)
            group = f"{prefix}{head}{delimiter}"
            if found and group != last:
                last = group
                yield group


def _make_folder(folder: Path) -> None:
    """Make the folder and those above it, each durable in its parent."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    with contextlib.suppress(FileExistsError):
        folder.mkdir()
    _sync_folder(folder.parent)


def _write_durably(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _errors_told(path: Path, key: str | None = None) -> Iterator[None]:
    """Turn the system's errors into one line with advice; with `key`, an absent file into `BlobMissing`."""
    try:
        yield
    except OSError as error:
        if key is not None and error.errno in (*_ABSENT, errno.ELOOP):
            raise BlobMissing(key) from error
        advice = _ADVICE.get(error.errno or 0, f"{error.strerror or error}; name another folder")
        raise StorageFailed(f"{path}: {advice}") from error
