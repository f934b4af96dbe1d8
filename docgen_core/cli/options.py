"""Options that several commands share, and the one parser of each.

Every parser raises `UsageError` with the value, what is wrong with it, and what there is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from docgen_core.errors import UsageError

if TYPE_CHECKING:
    from docgen_core.blobs.contract import BlobStore
    from docgen_core.runs.selection import Selection
    from docgen_core.runs.texts import WriterSettings
    from docgen_core.settings import Settings
    from docgen_core.state.contract import StateStore

State = Annotated[
    str | None,
    typer.Option(
        "--state",
        metavar="URI",
        help="State store: a path, sqlite:///…, dynamodb://TABLE, firestore://PROJECT/DATABASE  [DOCGEN_STATE]",
        show_default=False,
    ),
]
Blobs = Annotated[
    str | None,
    typer.Option("--blobs", metavar="URI", help="Blob store: a folder, file:///…  [DOCGEN_BLOBS]", show_default=False),
]
Sink = Annotated[
    str | None,
    typer.Option(
        "--sink",
        metavar="URI",
        help="Where tables go: a .duckdb file, a folder of Parquet, bigquery://…, athena://…  [DOCGEN_SINK]",
        show_default=False,
    ),
]
Catalogue = Annotated[
    str | None,
    typer.Option(
        "--catalogue",
        metavar="VERSION",
        help="Catalogue to draw from; without it the newest sealed one.  [DOCGEN_CATALOGUE]",
        show_default=False,
    ),
]
RunId = Annotated[str, typer.Argument(metavar="RUN", help="Run id: lower-case letters, digits, '.', '_', '-'.")]
Concurrency = Annotated[
    int | None,
    typer.Option(
        "--concurrency",
        min=1,
        max=1_000,
        help="Calls of language models at once, in each worker; 8 without it.  [DOCGEN_CONCURRENCY]",
        show_default=False,
    ),
]
MaxRejected = Annotated[
    int | None,
    typer.Option(
        "--max-rejected-percent",
        min=0,
        max=100,
        help="Fail a unit when more of its models' texts are turned down; 50 without it.  "
        "[DOCGEN_MAX_REJECTED_PERCENT]",
        show_default=False,
    ),
]
RunOrVersion = Annotated[str, typer.Argument(metavar="RUN|VERSION", help="Run id, or the version of a catalogue.")]
Workers = Annotated[int, typer.Option("--workers", min=1, max=512, help="Worker processes on this machine.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")]
JsonLines = Annotated[
    bool, typer.Option("--json", help="One JSON object a unit, each on a line, as in a pipe, also at a terminal.")
]

Documents = Annotated[int, typer.Option("--documents", min=1, max=100_000_000, help="How many documents.")]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**63 - 1, help="The same seed gives the same bytes.")]
UnitSize = Annotated[
    int | None,
    typer.Option("--unit-size", min=1, max=10_000, help="Documents to a unit; follows from --documents without it."),
]
Locale = Annotated[
    list[str] | None, typer.Option("--locale", help="Only these locales (repeat, or a,b): en-US, de-DE, ja-JP.")
]
Jurisdiction = Annotated[
    list[str] | None, typer.Option("--jurisdiction", help="Only sellers of these countries: US, DE, JP.")
]
Layout = Annotated[list[str] | None, typer.Option("--layout", help="Only these layouts.")]
BusinessType = Annotated[list[str] | None, typer.Option("--business-type", help="Only companies of these types.")]
Condition = Annotated[
    list[str] | None,
    typer.Option("--condition", help="Capture conditions, with weights where wanted: clean=3,light_scan=1."),
]
Companies = Annotated[
    str | None, typer.Option("--companies", metavar="FIRST-LAST", help="Only companies with these ids, e.g. 0-49.")
]


def listed(values: Sequence[str] | None) -> tuple[str, ...]:
    """Values of a repeatable option, commas split, in the order given, each once."""
    split = (item.strip() for value in values or () for item in value.split(","))
    return tuple(dict.fromkeys(item for item in split if item))


def weights(values: Sequence[str] | None) -> dict[str, int]:
    """`name` or `name=weight`, weights being whole numbers from 1; clean alone without any."""
    parsed: dict[str, int] = {}
    for item in listed(values):
        name, mark, weight = item.partition("=")
        if mark and not (weight.isascii() and weight.isdigit() and int(weight) > 0):
            raise UsageError(f"--condition {item!r}: the weight must be a whole number from 1, e.g. clean=3")
        parsed[name] = int(weight) if mark else 1
    return parsed or {"clean": 1}


def company_range(value: str | None) -> tuple[int, int] | None:
    """`FIRST-LAST`, both included."""
    if value is None:
        return None
    first, mark, last = value.partition("-")
    if not (mark and first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
        raise UsageError(f"--companies {value!r}: give FIRST-LAST with FIRST not above LAST, e.g. 0-49")
    return int(first), int(last)


def unit_set(text: str | None) -> frozenset[int] | None:
    """`1,4-7` as a set of unit numbers."""
    from docgen_core.runs.keys import MAX_UNITS

    if text is None:
        return None
    chosen: set[int] = set()
    for item in text.split(","):
        first, mark, last = item.strip().partition("-")
        last = last if mark else first
        if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last) < MAX_UNITS):
            raise UsageError(f"--units {text!r}: give unit numbers and ranges below {MAX_UNITS}, e.g. 1,4-7")
        chosen.update(range(int(first), int(last) + 1))
    return frozenset(chosen)


def selection_of(
    locale: Sequence[str] | None,
    jurisdiction: Sequence[str] | None,
    layout: Sequence[str] | None,
    business_type: Sequence[str] | None,
    condition: Sequence[str] | None,
    companies: str | None,
) -> Selection:
    """The flags as a selection."""
    from docgen_core.runs.selection import Selection

    return Selection(
        locales=listed(locale),
        jurisdictions=listed(jurisdiction),
        layouts=listed(layout),
        business_types=listed(business_type),
        conditions=weights(condition),
        companies=company_range(companies),
    )


@dataclass(frozen=True, slots=True)
class Places:
    """The opened stores of one command, and the settings that named them."""

    settings: Settings
    state: StateStore
    blobs: BlobStore

    @property
    def writing(self) -> WriterSettings:
        """How language models are asked."""
        from docgen_core.runs.texts import WriterSettings

        return WriterSettings(self.settings.concurrency, self.settings.max_rejected_percent)


@contextmanager
def places(
    state: str | None = None,
    blobs: str | None = None,
    *,
    found: bool = False,
    catalogue: str | None = None,
    concurrency: int | None = None,
    max_rejected_percent: int | None = None,
) -> Iterator[Places]:
    """Both stores, closed at the end. With `found`, a state file that is not there is refused, not made."""
    from docgen_core.blobs import open_blobs
    from docgen_core.settings import load_settings
    from docgen_core.state import open_state, state_file

    settings = load_settings(
        state=state,
        blobs=blobs,
        catalogue=catalogue,
        concurrency=concurrency,
        max_rejected_percent=max_rejected_percent,
    )
    if found and (file := state_file(settings.state)) is not None and not file.exists():
        raise UsageError(f"no state store at {file}: nothing was planned there; check --state and your folder")
    with closing(open_blobs(settings.blobs)) as blob_store, closing(open_state(settings.state)) as state_store:
        yield Places(settings, state_store, blob_store)


def run_named(here: Places, name: str) -> str:
    """The run of this id, or the build of the catalogue version of this name. Raises `RunUnknown`."""
    from docgen_core.errors import RunUnknown
    from docgen_core.runs.keys import catalogue_run_id, is_name

    for run_id in (name, *([catalogue_run_id(name)] if is_name(name) else [])):
        with suppress(RunUnknown):
            return here.state.run(run_id).run_id
    raise RunUnknown(name)


def refuse_unknown(here: Places, run: str) -> None:
    """Raise `RunUnknown` for a run that neither store knows: to finish it would be wrong advice."""
    from docgen_core.runs.manifest import is_published

    if not is_published(here.blobs, run):
        here.state.run(run)
