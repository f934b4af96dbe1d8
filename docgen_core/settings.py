"""One URI for each place: state, blobs, catalogue, sink. Flags win over `DOCGEN_*` variables.

Bare paths are relative to the working directory and made absolute here, once, so that a worker
started elsewhere means the same place. What does not belong here: opening any of them.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from docgen_core.errors import UsageError

HOME = Path(".docgen")
"""Where everything lives by default, under the working directory."""


class Settings(BaseSettings):
    """Places and defaults, from `DOCGEN_*` variables or keyword arguments."""

    model_config = SettingsConfigDict(env_prefix="DOCGEN_", extra="ignore")

    state: str = str(HOME / "state.db")
    """State store URI."""
    blobs: str = str(HOME / "blobs")
    """Blob store URI."""
    sink: str = str(HOME / "golden.duckdb")
    """Sink URI of exports."""
    catalogue: str | None = None
    """Catalogue version; None means the newest sealed one."""
    companies: int = Field(default=500, ge=1, le=10_000_000)
    """Roster size of the catalogue that the Dagster partitions are made from."""
    range_width: int = Field(default=50, ge=1, le=10_000)
    """Companies to a range: a unit of a catalogue build, a partition in Dagster."""
    products: int = Field(default=24, ge=1, le=1_000)
    """Products a company."""
    mix: str | None = None
    """Language models that write a catalogue's descriptions: a file or a preset; None for a procedural one."""
    budget_usd: str | None = None
    """US dollars that a catalogue build may spend on them."""
    concurrency: int = Field(default=8, ge=1, le=1_000)
    """Calls of language models that a worker makes at once."""
    max_rejected_percent: int = Field(default=50, ge=0, le=100)
    """A unit of a catalogue fails when more of its models' texts are turned down."""

    @field_validator("state", "blobs", "sink")
    @classmethod
    def _absolute(cls, value: str) -> str:
        return absolute_uri(value)


def absolute_uri(value: str) -> str:
    """The same place with a bare path made absolute; a URI with a scheme stays as it is.

    Raises `ValueError` for what is neither: the folder `duckdb:` of a URI that lacks two slashes, the user of `~user`.
    """
    if not value.strip():
        raise ValueError("is empty; give a URI or a path")
    if "\0" in unquote(value):
        raise ValueError(f"{value!r} has a character that no name can have")
    path, mark, query = value.partition("?")
    if "://" in path:
        return value
    if ":" in path.partition("/")[0]:
        raise ValueError(f"{value!r} is no URI, which has :// in it; write ./{value} for a path")
    try:
        return str(Path(path).expanduser().absolute()) + mark + query
    except RuntimeError:
        raise ValueError(f"{value!r}: there is no user {path.partition('/')[0].removeprefix('~')!r} here") from None


def load_settings(**flags: str | int | None) -> Settings:
    """Settings with the flags that were given. Raises `UsageError` naming the setting that is wrong."""
    try:
        return Settings(**{name: value for name, value in flags.items() if value is not None})  # type: ignore[arg-type]
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(step) for step in first["loc"])
        reason = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"setting {name!r} (--{name.replace('_', '-')} or DOCGEN_{name.upper()}): {reason}") from None
