"""The same run and index give the same record in any process, time zone, locale and hash seed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from docgen_core.packs.invoice.jurisdictions import JURISDICTIONS
from docgen_core.packs.invoice.places import name_parts, places
from docgen_core.render import fonts

DIGEST = """
import decimal, hashlib, json
from docgen_core.packs.contract import RunView
from docgen_core.packs.invoice import PACK
from docgen_core.runs.selection import CatalogueSpec, Selection

decimal.getcontext().prec = PRECISION
spec = CatalogueSpec(companies=10, products=12)
made = {company: PACK.catalogue_rows(spec, company) for company in range(10)}

class View:
    version = "v"
    def company_ids(self): return list(made)
    def company(self, company): return made[company]["companies"][0]
    def rows(self, table, company): return made[company].get(table, [])

view = View()
ids = PACK.eligible(Selection(), (view.company(company) for company in made))
run = RunView("00c0ffee", 5, Selection(conditions={"light_scan": 1, "clean": 1}), ids, view)
records = [PACK.record(run, index) for index in range(40)]
print(hashlib.sha256(repr([(record, PACK.to_rows(record)) for record in records]).encode()).hexdigest())
"""


def digest(precision: int, **environment: str) -> str:
    code = DIGEST.replace("PRECISION", str(precision))
    finished = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONUTF8": "1", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return finished.stdout.strip()


def test_nothing_around_the_process_decides_a_record() -> None:
    here = digest(28, PYTHONHASHSEED="1", TZ="UTC", LC_ALL="C")
    assert len(here) == 64
    assert digest(9, PYTHONHASHSEED="77", TZ="Pacific/Auckland", LC_ALL="de_DE.UTF-8") == here


def _texts(part: object) -> list[str]:
    """Every text in a nest of tables and lists."""
    if isinstance(part, dict):
        part = list(part.values())
    if isinstance(part, list):
        return [text for each in part for text in _texts(each)]
    return [part] if isinstance(part, str) else []


@pytest.mark.parametrize("country", sorted(JURISDICTIONS))
def test_every_name_and_place_can_be_drawn_by_the_bundled_faces(country: str) -> None:
    language = JURISDICTIONS[country].locale.split("-")[0]
    texts = _texts(dict(name_parts(language))) + list(name_parts(language)["forms"])
    texts += [text for place in places(country) for text in (place.postcode, place.city, place.region)]
    assert len("".join(texts)) > 500
    korean = ("Docgen KR",) if JURISDICTIONS[country].script == "Kore" else ()
    fonts.check("".join(texts), (*fonts.DEFAULT_STACK, *korean))
