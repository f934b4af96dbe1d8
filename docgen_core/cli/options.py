"""Options that several commands share, and the one parser of each.

Every parser raises `UsageError` with the value, what is wrong with it, and what there is.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

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
    typer.Option(
        "--blobs", metavar="URI", help="Blob store: a folder, s3://…, gs://…  [DOCGEN_BLOBS]", show_default=False
    ),
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
_Names = list[str] | None


def _many(flag: str, help_: str, metavar: str = "NAME") -> Any:
    return Annotated[_Names, typer.Option(flag, metavar=metavar, help=help_, show_default=False)]


def _one(flag: str, metavar: str, help_: str) -> Any:
    """A flag of one value; a list, so that a second one is seen, and refused by `_once`."""
    return _many(flag, help_, metavar)


def _said(flag: str, help_: str) -> Any:
    return Annotated[bool, typer.Option(flag, help=help_)]


_SELECTING: dict[str, Any] = {
    "locale": _many("--locale", "Only these locales (repeat, or a,b): en-US, de-DE, ja-JP, …"),
    "jurisdiction": _many("--jurisdiction", "Only sellers of these countries: US, DE, JP, …"),
    "layout": _many("--layout", "Only these layouts."),
    "business-type": _many("--business-type", "Only companies of these types."),
    "currency": _many("--currency", "Only documents in these currencies: EUR, JPY, …"),
    "company": _many("--company", "Only the companies with these ids.", "ID"),
    "companies": _one("--companies", "FIRST-LAST|N", "Only companies with ids in a range, or the first N that fit."),
    "condition": _many(
        "--condition", "Capture conditions, with weights where wanted: clean=3,light_scan=1.", "NAME[=WEIGHT]"
    ),
    "wear": _one("--wear", "0-100", "How worn the captured pages are; without it each condition draws its own."),
    "output": _one("--output", "pdf|png|jpeg|tiff|html", "What the files are; pdf without it."),
    "issued": _one("--issued", "FROM..TO", "Only documents dated so: 2024-01-01..2024-06-30, 2023..2024, 2024-03."),
    "line-items": _one("--line-items", "FEWEST-MOST", "Only documents with so many lines of items, e.g. 3-40."),
    "credit-notes": _one("--credit-notes", "SHARE", "Share of the documents that are credit notes, e.g. 0.05."),
    "tax-mix": _many("--tax-mix", "Tax categories (UNCL 5305), with weights: S=6,AE=2,Z=1,E=1.", "CATEGORY[=WEIGHT]"),
    "labels": _said("--labels", "Put a file of labels (JSON) beside each document: values, boxes, words."),
    "words": _said("--words", "Fill the table `words`: every word of each page with its box and golden label."),
    "anachronism": _said("--anachronism", "Allow documents from before their company, or in a form it never used."),
}
"""The flags that choose documents, by the name of their wish."""

_SelectionFile = _one(
    "--selection", "FILE", "The same wishes as a YAML file, by the names of these flags; a flag wins over the file."
)
_OF_ONE = frozenset(("companies", "wear", "output", "issued", "line-items", "credit-notes"))
"""Wishes that a command may be told once."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a command was told about the documents it is to make."""

    flags: Mapping[str, object]
    file: str | None

    def selection(self) -> Selection:
        """The selection they make. Raises `UsageError`."""
        from docgen_core.runs.wishes import selection_of

        return selection_of(self.flags, self.file)


def selecting(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the flags that choose documents, in the place of its parameter `wishes`."""
    signature = inspect.signature(command, eval_str=True)
    options = {name.replace("-", "_"): (name, kind) for name, kind in _SELECTING.items()}

    @functools.wraps(command)
    def chosen(**given: Any) -> int:
        flags = {wish: given.pop(name) for name, (wish, _) in options.items()}
        told = {wish: _once(wish, value) if wish in _OF_ONE else value for wish, value in flags.items()}
        wishes = Wishes(told, _once("selection", given.pop("selection")))
        return command(**given, wishes=wishes)

    added = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=False if wish in _SWITCHES else None, annotation=kind
        )
        for name, (wish, kind) in options.items()
    ]
    added.append(
        inspect.Parameter("selection", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_SelectionFile)
    )
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        own = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        parameters += added if parameter.name == "wishes" else [own]
    chosen.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    chosen.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return chosen


def _once(flag: str, values: _Names) -> str | None:
    """The flag's one value. Raises `UsageError` for two that differ."""
    if values and len(set(values)) > 1:
        raise UsageError(f"--{flag} is given twice, as {values[0]!r} and {values[-1]!r}; give it once")
    return values[0] if values else None


_SWITCHES = frozenset(("labels", "words", "anachronism"))


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


_NOTHING_PLANNED = "memory://nothing-planned"
"""The state store of who has blobs and no state file."""


@contextmanager
def published(state: str | None, blobs: str | None) -> Iterator[Places]:
    """Both stores, for who uses what is sealed. No state file is made: without one, blobs alone say what there is."""
    from docgen_core.settings import load_settings
    from docgen_core.state import state_file

    uri = load_settings(state=state).state
    file = state_file(uri)
    with places(uri if file is None or file.exists() else _NOTHING_PLANNED, blobs) as here:
        yield here


def run_named(here: Places, name: str) -> str:
    """The run of this id, or the build of the catalogue version of this name. Raises `RunUnknown`."""
    from docgen_core.errors import RunUnknown
    from docgen_core.runs.keys import catalogue_run_id, is_name

    for run_id in (name, *([catalogue_run_id(name)] if is_name(name) else [])):
        with suppress(RunUnknown):
            return here.state.run(run_id).run_id
    raise RunUnknown(name)
