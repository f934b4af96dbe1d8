"""A document type as small as can be: a worker's coordination is simulated, not what it makes."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from delivery_note_pack import DeliveryNotes

from docgen_core.golden import column
from docgen_core.packs.contract import Rows
from docgen_core.runs.selection import CatalogueSpec


class Smallest(DeliveryNotes):
    """Documents without tables of their own."""

    tables: Mapping[str, pa.Schema] = {}
    catalogue_tables: Mapping[str, pa.Schema] = {
        "companies": pa.schema(
            [column("company_id", pa.int64(), "Company."), column("depot", pa.string(), "Its depot, and who said so.")]
        )
    }

    def __init__(self) -> None:
        super().__init__("PACK")
        self.name = "sim_pack:PACK"

    def catalogue_rows(self, spec: CatalogueSpec, company_id: int) -> Rows:
        return {"companies": [{"company_id": company_id, "depot": f"depot {company_id + spec.seed}"}]}


PACK = Smallest()
