"""What a Firestore database needs before a run: exemptions from its automatic indexes.

What does not belong here: making a database, since where it stays is its owner's to say, and for good.
"""

from __future__ import annotations

import os

from google.api_core.exceptions import GoogleAPICallError
from google.auth.exceptions import GoogleAuthError
from google.cloud.firestore_admin_v1 import Field, FirestoreAdminClient

from docgen_core.state.firestore_calls import Database, explained

_COLLECTIONS = ("runs", "units", "seals", "ledger")
"""Whose map `row` no query asks about. Indexed, its times would be values that only rise, which limits
how many documents a second can be written."""

_INDEXING_SECONDS = 600.0
"""How long the service may take to drop an index of a large collection."""


def prepare(project: str, database: str) -> str:
    """Take `row` out of every index, and see that documents can be read; says what is there now.

    Raises `StateUnusable` where there is no such database, and `StorageFailed`.
    """
    here = Database(project, database)
    here.query(here.client.collection("runs").limit(1))
    place = f"the database {database!r} of project {project!r}"
    if os.environ.get("FIRESTORE_EMULATOR_HOST"):
        return f"{place} is an emulator's, which indexes nothing"
    exempted = exempt_rows(project, database)
    return f"{place} has its exemptions from indexing" + ("" if exempted else ", and had them before")


def exempt_rows(project: str, database: str) -> int:
    """Leave `row` of each collection out of every index; for how many this call changed that."""
    admin = admin_client()
    try:
        return sum([_exempt(admin, project, database, collection) for collection in _COLLECTIONS])
    except (GoogleAPICallError, GoogleAuthError) as error:
        raise explained(error, project, database) from error


def admin_client() -> FirestoreAdminClient:
    """A client of the service that manages databases."""
    return FirestoreAdminClient()


def _exempt(admin: FirestoreAdminClient, project: str, database: str, collection: str) -> bool:
    name = admin.field_path(project, database, collection, "row")
    there = admin.get_field(name=name).index_config
    if not there.uses_ancestor_config and not there.indexes:
        return False
    change = admin.update_field(field=Field(name=name, index_config=Field.IndexConfig(indexes=[])))
    change.result(_INDEXING_SECONDS)  # type: ignore[no-untyped-call]
    return True
