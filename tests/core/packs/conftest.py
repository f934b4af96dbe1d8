"""A small catalogue in memory: three countries, every billing model, several tax classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

import pytest

from docgen_core.money import RoundingPolicy, minor_units
from docgen_core.packs.contract import Row, RunView
from docgen_core.packs.invoice.arithmetic import Discount, Sale, compute
from docgen_core.packs.invoice.model import Identity, Invoice, Party, Payment, Registration
from docgen_core.runs.selection import Selection

COUNTRIES = {"DE": ("de-DE", "EUR"), "US": ("en-US", "USD"), "JP": ("ja-JP", "JPY")}
NAMES = {
    "DE": ("Kugellager", "Filtermatte", "Kalibrierung", "Wartung", "Apfelsaft", "Fachbuch"),
    "US": ("Ball bearing", "Filter mat", "Calibration", "Maintenance", "Apple juice", "Handbook"),
    "JP": ("玉軸受", "フィルターマット", "校正作業", "保守点検", "りんごジュース", "専門書"),
}
UNITS = {
    "C62": {"DE": "Stk.", "US": "ea", "JP": "個"},
    "HUR": {"DE": "Std.", "US": "hr", "JP": "時間"},
    "MON": {"DE": "Monat", "US": "month", "JP": "月"},
    "KWH": {"DE": "kWh", "US": "kWh", "JP": "kWh"},
}
MODELS = ("per_unit", "flat", "hourly", "subscription", "graduated")
UNIT_CODES = {"hourly": "HUR", "subscription": "MON", "graduated": "KWH"}
TAX_CLASSES = ("standard", "standard", "standard", "reduced", "reduced")
AMERICAN_TAX_CLASSES = (*TAX_CLASSES, "exempt")
PERIODS = ("month", "month", "quarter", "year")


@dataclass
class MemoryCatalogue:
    """`CatalogueView` over rows made on the spot."""

    companies: int = 60
    products: int = 24
    version: str = "test-1"
    _made: dict[tuple[str, int], list[Row]] = field(default_factory=dict)

    def company_ids(self) -> Sequence[int]:
        return range(self.companies)

    def company(self, company_id: int) -> Row:
        country = list(COUNTRIES)[company_id % 3]
        locale, currency = COUNTRIES[country]
        till = company_id % 5 == 0
        return {
            "company_id": company_id,
            "jurisdiction": country,
            "locale": locale,
            "currency": currency,
            "business_type": "grocery_retail" if till else "industrial_supplies",
            "billing_model": "per_unit" if till else MODELS[company_id // 3 % len(MODELS)],
            "document_kind": "receipt" if till else "invoice",
            "size_class": ("micro", "small", "medium", "large")[company_id % 4],
            "founded_year": 1950 + company_id % 70,
            "niche": "fasteners",
        }

    def rows(self, table: str, company_id: int) -> Sequence[Row]:
        key = (table, company_id)
        if key not in self._made:
            make = self._product if table == "products" else self._tiers
            made = [make(company_id, number) for number in range(1, self.products + 1)]
            self._made[key] = [row for rows in made for row in rows]
        return self._made[key]

    def _product(self, company_id: int, number: int) -> list[Row]:
        company = self.company(company_id)
        country = company["jurisdiction"]
        tax_classes = AMERICAN_TAX_CLASSES if country == "US" else TAX_CLASSES
        model = company["billing_model"] if number % 3 else "flat"
        code = UNIT_CODES.get(model, "C62")
        places = 0 if country == "JP" and number % 4 else 2
        price = Decimal(number * 137 + company_id * 11).scaleb(-places) + Decimal(1).scaleb(-places)
        return [
            {
                "company_id": company_id,
                "product_id": number,
                "sku": f"SK-{number:04d}",
                "name": f"{NAMES[country][number % 6]} {number}",
                "detail": None if number % 2 else f"Ø {number} mm",
                "unit": UNITS[code][country],
                "unit_code": code,
                "unit_price": price.quantize(Decimal("1e-9")),
                "hs_code": "848210" if code == "C62" else None,
                "tax_class": tax_classes[number % len(tax_classes)],
                "tax_category": {"standard": "S", "reduced": "AA", "exempt": "E"}[
                    tax_classes[number % len(tax_classes)]
                ],
                "price_places": places,
                "billing_model": model,
                "recurring_period": PERIODS[number % 4] if model == "subscription" else None,
                "typical_quantity_min": Decimal(1) if code != "KWH" else Decimal(50),
                "typical_quantity_max": Decimal(40) if code != "KWH" else Decimal(2000),
                "typical_quantity_step": Decimal("0.25") if code == "HUR" else Decimal(1),
            }
        ]

    def _tiers(self, company_id: int, number: int) -> list[Row]:
        (product,) = self._product(company_id, number)
        if product["billing_model"] != "graduated":
            return []
        bands = ((100, "0.31"), (500, "0.2875"), (None, "0.24"))
        return [
            {
                "company_id": company_id,
                "product_id": number,
                "tier": tier,
                "up_to": None if up_to is None else Decimal(up_to),
                "unit_price": Decimal(price),
            }
            for tier, (up_to, price) in enumerate(bands, start=1)
        ]


@pytest.fixture(scope="session")
def catalogue() -> MemoryCatalogue:
    return MemoryCatalogue()


@pytest.fixture(scope="session")
def run(catalogue: MemoryCatalogue) -> RunView:
    """A run over the whole catalogue."""
    return RunView("0badcafe", 7, Selection(), catalogue.company_ids(), catalogue)


InvoiceMaker = Callable[..., Invoice]


@pytest.fixture(scope="session")
def make_invoice() -> InvoiceMaker:
    """An invoice around sales, as a record would hold it; parties and look are of no interest."""

    def make(
        sales: Sequence[Sale],
        *,
        currency: str = "EUR",
        policy: RoundingPolicy = RoundingPolicy.PER_BUCKET,
        discount: Discount | None = None,
        buyer_vat_id: str | None = None,
        notes: tuple[str, ...] = (),
    ) -> Invoice:
        result = compute(sales, places=minor_units(currency), policy=policy, discount=discount)
        buyer_ids = (Registration("FR:VAT", "N° TVA", buyer_vat_id),) if buyer_vat_id else ()
        return Invoice(
            document_id="0badcafe-0000001",
            index=1,
            company_id=3,
            catalogue_version="test-1",
            kind="invoice",
            number="RE-1",
            issue_date=date(2024, 3, 5),
            issue_time=None,
            due_date=date(2024, 4, 4),
            service_from=date(2024, 3, 1),
            service_to=date(2024, 3, 4),
            order_number=None,
            customer_number="10001",
            currency=currency,
            minor_units=minor_units(currency),
            locale="de-DE",
            jurisdiction="DE",
            business_type="industrial_supplies",
            billing_model="per_unit",
            rounding_policy=policy.value,
            seller=Party(
                "Eichbruch Technik GmbH",
                ("Mohngrundweg 1", "10115 Berlin"),
                "DE",
                (Registration("DE:VAT", "USt-IdNr.", "DE990000018"),),
                "030 23125 001",
                "info@eichbruch.example",
                "www.eichbruch.example",
            ),
            buyer=Party("Moulin Test SARL", ("1 rue Inventée", "75001 Paris"), "FR", buyer_ids, "", "", ""),
            lines=result.lines,
            tax_lines=result.tax_lines,
            totals=result.totals,
            payment=Payment("Net 30", "bank_transfer", (("IBAN", "DE00"),), ("iban",)),
            notes=notes,
            identity=Identity("letter", "Docgen Sans", "#000000", "E", 1, "ruled", "dd.MM.y", "A4"),
            condition="clean",
        )

    return make
