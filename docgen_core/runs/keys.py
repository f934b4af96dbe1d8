"""Where a run's blobs stand, and what a run may be called. The only place that spells keys.

Writers use these names; readers take keys from the manifest and never guess them. A run's place
follows from its id alone (decision 0011).
"""

from __future__ import annotations

import re

from docgen_core.errors import UsageError

RUNS = "runs"
"""Parent of every documents run's prefix."""
CATALOGUES = "catalogue"
"""Parent of every catalogue's prefix."""
CATALOGUE_RUN = "catalogue-"
"""The build of catalogue VERSION is run `catalogue-VERSION`; such ids are reserved."""
SEALED = "sealed/"
"""Marker of a finished run, holding its root's digest."""
WITHDRAWN = "withdrawn/"
"""Tombstone of a run that nobody may read any more."""

USAGE = "usage"
"""Folder of the records of calls to language models: of what was spent, and no part of the catalogue."""

_LABELS = ".labels.json"

MAX_UNITS = 1_000_000
"""Unit numbers have six digits, so that key order is unit order."""

_RUN_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_UNIT = r"unit-(?P<unit>\d{6})"
_OF_UNIT = re.compile(
    rf"documents/{_UNIT}/[^/]+"
    rf"|golden/(?P<table>[^/]+)/{_UNIT.replace('unit>', 'shard>')}(?P<g1>\.g\d+)?\.parquet"
    rf"|manifest/{_UNIT.replace('unit>', 'part>')}(?P<g2>\.g\d+)?\.json"
    rf"|{USAGE}/{_UNIT.replace('unit>', 'used>')}\.g\d+\.parquet"
)


def is_name(name: str) -> bool:
    """Whether it can name a run or a catalogue."""
    return _RUN_ID.fullmatch(name) is not None and ".." not in name


def check_name(name: str, what: str) -> str:
    """The name itself. Raises `UsageError` when it cannot name a run or a catalogue."""
    if not is_name(name):
        raise UsageError(
            f"{what} {name!r} is no name: lower-case letters, digits, '.', '_' and '-', beginning with a letter "
            "or digit, at most 100 characters, no '..' and no path"
        )
    return name


def check_run_id(run_id: str) -> str:
    """The id itself. Raises `UsageError` for one that a documents run cannot have."""
    check_name(run_id, "run id")
    if run_id.startswith(CATALOGUE_RUN):
        raise UsageError(f"run id {run_id!r}: ids beginning with {CATALOGUE_RUN!r} belong to catalogue builds")
    return run_id


def catalogue_run_id(version: str) -> str:
    """Id of the run that builds a catalogue version."""
    return check_name(f"{CATALOGUE_RUN}{check_name(version, 'catalogue version')}", "run id")


def default_prefix(run_id: str) -> str:
    """Prefix of a run's blobs, without a slash at its end."""
    check_name(run_id, "run id")
    if run_id.startswith(CATALOGUE_RUN):
        return f"{CATALOGUES}/{run_id.removeprefix(CATALOGUE_RUN)}"
    return f"{RUNS}/{run_id}"


def run_id_at(prefix: str) -> str:
    """The run whose blobs stand under `prefix`: the other way round of `default_prefix`."""
    parent, _, name = prefix.rpartition("/")
    return f"{CATALOGUE_RUN}{name}" if parent == CATALOGUES else name


def plan_key(prefix: str) -> str:
    """The plan artefact."""
    return f"{prefix}/plan.json"


def root_key(prefix: str) -> str:
    """The root manifest, whose presence means done."""
    return f"{prefix}/manifest.json"


def part_key(prefix: str, unit: int, generation: int | None = None) -> str:
    """A unit's manifest part; with the attempt's `generation` where attempts may give other bytes."""
    return f"{prefix}/manifest/unit-{unit:06d}{_attempt(generation)}.json"


def document_key(prefix: str, unit: int, document_id: str, ending: str) -> str:
    """A document's file; `ending` is its suffix, with the page's number before it where each page is a file."""
    return f"{prefix}/documents/unit-{unit:06d}/{document_id}{ending}"


def labels_key(prefix: str, unit: int, document_id: str) -> str:
    """The file of labels beside a document."""
    return f"{prefix}/documents/unit-{unit:06d}/{document_id}{_LABELS}"


def shard_key(prefix: str, table: str, unit: int, generation: int | None = None) -> str:
    """A unit's shard of one golden table; `generation` as in a part's key."""
    return f"{prefix}/golden/{table}/unit-{unit:06d}{_attempt(generation)}.parquet"


def usage_key(prefix: str, unit: int, generation: int) -> str:
    """What an attempt at a unit has asked of language models. No manifest names it."""
    return f"{prefix}/{USAGE}/unit-{unit:06d}.g{generation}.parquet"


def sealed_key(run_id: str) -> str:
    """The run's marker for watchers."""
    return f"{SEALED}{run_id}"


def withdrawn_key(run_id: str) -> str:
    """The run's tombstone."""
    return f"{WITHDRAWN}{run_id}"


def document_id(stream: str, index: int) -> str:
    """Id of document `index` in every run of the stream."""
    return f"{stream}-{index:07d}"


def unit_of(prefix: str, key: str) -> int | None:
    """The unit that a key under the prefix belongs to by its form; None for a form no unit writes."""
    found = _match(_OF_UNIT, prefix, key)
    return None if found is None else int(found["unit"] or found["shard"] or found["part"] or found["used"])


def shard_table(prefix: str, key: str) -> str | None:
    """The golden table whose shard stands under the key; None for what is no shard of the run at `prefix`."""
    found = _match(_OF_UNIT, prefix, key)
    return None if found is None else found["table"]


def is_document(prefix: str, key: str) -> bool:
    """Whether the key is that of a document's file of the run at `prefix`."""
    found = _match(_OF_UNIT, prefix, key)
    return found is not None and found["unit"] is not None and not key.endswith(_LABELS)


def is_usage(prefix: str, key: str) -> bool:
    """Whether an attempt's calls to language models are recorded under the key."""
    found = _match(_OF_UNIT, prefix, key)
    return found is not None and found["used"] is not None and prefix.startswith(f"{CATALOGUES}/")


def is_attempt(prefix: str, key: str) -> bool:
    """Whether the key carries an attempt's generation: unnamed by a part, it is a superseded attempt.

    Only a catalogue's texts differ from attempt to attempt; a run of documents writes no such keys.
    """
    found = _match(_OF_UNIT, prefix, key)
    return found is not None and bool(found["g1"] or found["g2"]) and prefix.startswith(f"{CATALOGUES}/")


def _attempt(generation: int | None) -> str:
    return "" if generation is None else f".g{generation}"


def _match(form: re.Pattern[str], prefix: str, key: str) -> re.Match[str] | None:
    return form.fullmatch(key, len(prefix) + 1) if key.startswith(f"{prefix}/") else None
