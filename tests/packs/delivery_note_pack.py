"""A document type with no money in it: proves that the core's contract is not invoice-shaped.

`PACK` is the sound one. The others do what a worker has to survive, each at document or company
`TROUBLE`: kill the process, refuse the record, crash, or wait for a file to appear.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from docgen_core.errors import RecordRefused, SelectionRefused
from docgen_core.golden import DECIMAL, KEY_FIELDS, column
from docgen_core.llm.items import TextItem, Written
from docgen_core.packs.contract import Row, Rows, RunView
from docgen_core.render.capture import CONDITIONS
from docgen_core.render.html import Page, PrintLog
from docgen_core.runs.keys import document_id
from docgen_core.runs.selection import CatalogueSpec, Selection

TROUBLE = 5
"""Index at which the troubled packs do what they are for."""

GATE_VARIABLE = "DELIVERY_NOTE_GATE"
"""Names the file that the waiting pack waits for."""

DEPOTS = ("Norden", "Süden", "東京")

TABLES = {
    "delivery_notes": pa.schema(
        [
            *KEY_FIELDS,
            column("depot", pa.string(), "Where it left from."),
            column("shipped", pa.date32(), "When it left."),
            column("weight", DECIMAL, "Kilograms of all parcels."),
            column("note", pa.string(), "Remark, where there is one.", nullable=True),
        ]
    ),
    "parcels": pa.schema(
        [*KEY_FIELDS, column("goods", pa.string(), "Content."), column("weight", DECIMAL, "Kilograms.")]
    ),
}

CATALOGUE_TABLES = {
    "companies": pa.schema(
        [column("company_id", pa.int64(), "Company."), column("depot", pa.string(), "Depot of the company.")]
    ),
    "goods": pa.schema([column("company_id", pa.int64(), "Company."), column("name", pa.string(), "What it ships.")]),
}


@dataclass(frozen=True, slots=True)
class DeliveryNote:
    document_id: str
    layout: str
    locale: str
    condition: str
    catalogue_version: str
    depot: str
    shipped: date
    parcels: tuple[tuple[str, Decimal], ...]
    note: str | None

    @property
    def weight(self) -> Decimal:
        return sum((weight for _, weight in self.parcels), Decimal(0))


class DeliveryNotes:
    """The pack. `name` is how it is loaded, since no entry point names it."""

    version = "1"
    tables: Mapping[str, pa.Schema] = TABLES
    catalogue_tables: Mapping[str, pa.Schema] = CATALOGUE_TABLES

    def __init__(self, attribute: str) -> None:
        self.name = f"delivery_note_pack:{attribute}"

    def trouble(self, index: int) -> None:
        """What goes wrong with this document or company: nothing, here."""

    def refuse_impossible(self, selection: Selection) -> None:
        unknown = sorted(set(selection.conditions) - set(CONDITIONS))
        if unknown:
            raise SelectionRefused(
                f"delivery notes have no condition {unknown[0]!r}; there are {', '.join(CONDITIONS)}"
            )

    def eligible(self, selection: Selection, companies: Iterator[Row]) -> list[int]:
        return [row["company_id"] for row in companies]

    def catalogue_rows(self, spec: CatalogueSpec, company_id: int) -> Rows:
        self.trouble(company_id)
        depot = DEPOTS[(company_id + spec.seed) % len(DEPOTS)]
        goods = [{"company_id": company_id, "name": f"Goods {company_id}.{n}"} for n in range(spec.products)]
        return {"companies": [{"company_id": company_id, "depot": depot}], "goods": goods}

    def text_items(self, rows: Rows) -> Sequence[TextItem]:
        return ()

    def with_texts(self, rows: Rows, texts: Mapping[str, Written]) -> Rows:
        return rows

    def record(self, run: RunView, index: int) -> DeliveryNote:
        self.trouble(index)
        draws = run.draws(index)
        company = run.catalogue.company(draws.choice("company", run.companies))
        goods = run.catalogue.rows("goods", company["company_id"])
        parcels = tuple(
            (str(draws.choice(f"goods {n}", goods)["name"]), Decimal(draws.integer(f"weight {n}", 1, 99_999)) / 1000)
            for n in range(draws.integer("parcels", 1, 3))
        )
        return DeliveryNote(
            document_id=document_id(run.stream, index),
            layout="plain",
            locale="de-DE",
            condition=draws.weighted("condition", run.selection.conditions),
            catalogue_version=run.catalogue.version,
            depot=str(company["depot"]),
            shipped=date(2024, 1, 1) + timedelta(days=draws.integer("shipped", 0, 365)),
            parcels=parcels,
            note="Vorsicht, zerbrechlich" if draws.chance("note", 500) else None,
        )

    def to_rows(self, record: DeliveryNote) -> Rows:
        keys = {"document_id": record.document_id, "catalogue_version": record.catalogue_version}
        head = {"depot": record.depot, "shipped": record.shipped, "weight": record.weight, "note": record.note}
        return {
            "delivery_notes": [{**keys, "row_key": "1", **head}],
            "parcels": [
                {**keys, "row_key": str(number), "goods": goods, "weight": weight}
                for number, (goods, weight) in enumerate(record.parcels, 1)
            ],
        }

    def html(self, record: DeliveryNote) -> Page:
        log = PrintLog()
        show = log.show("delivery_notes", "1", "depot", record.depot, record.depot)
        total = log.show("delivery_notes", "1", "weight", f"{record.weight} kg", str(record.weight))
        lines = "".join(
            f"<p>{log.show('parcels', str(n), 'goods', goods, goods)}: "
            f"{log.show('parcels', str(n), 'weight', str(weight), str(weight))}</p>"
            for n, (goods, weight) in enumerate(record.parcels, 1)
        )
        return Page(
            body=f"<h1>Lieferschein {show}</h1>{lines}<p>{total}</p>",
            style="@page{size:100mm 100mm;margin:8mm} body{font-family:'Docgen Sans','Docgen JP';font-size:9pt}",
            lang="de",
            title=record.document_id,
            author="Specimen Spedition",
            prints=tuple(log.prints),
        )


class Poisonous(DeliveryNotes):
    """Kills its process, every time."""

    def trouble(self, index: int) -> None:
        if index == TROUBLE:
            os.kill(os.getpid(), signal.SIGKILL)


class Refusing(DeliveryNotes):
    """Refuses a record, as one that does not reconcile."""

    def trouble(self, index: int) -> None:
        if index == TROUBLE:
            raise RecordRefused("parcels weigh more than the lorry")


class Crashing(DeliveryNotes):
    """Has a bug."""

    def trouble(self, index: int) -> None:
        if index == TROUBLE:
            raise ZeroDivisionError("a bug of the pack")


class Waiting(DeliveryNotes):
    """Makes one document only once the gate is open, so that a test can act while it is in hand."""

    def trouble(self, index: int) -> None:
        gate = Path(os.environ.get(GATE_VARIABLE, "/nonexistent"))
        while index == TROUBLE and not gate.exists():
            time.sleep(0.01)


PACK = DeliveryNotes("PACK")
POISONOUS = Poisonous("POISONOUS")
REFUSING = Refusing("REFUSING")
CRASHING = Crashing("CRASHING")
WAITING = Waiting("WAITING")
