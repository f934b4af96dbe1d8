"""Invoices built by hand for the layouts: three countries, short, long, discounted, graduated."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any

import pytest

from docgen_core.money import RoundingPolicy, minor_units
from docgen_core.packs.invoice.arithmetic import Band, Discount, Sale, Tax, compute
from docgen_core.packs.invoice.layouts import render_page
from docgen_core.packs.invoice.model import Identity, Invoice, Party, Payment, Registration
from docgen_core.packs.invoice.settlement import Settlement, settle
from docgen_core.render.boxes import Box, Rendered
from docgen_core.render.chromium import Renderer
from docgen_core.render.html import Page

PARTIES = {
    "de-DE": (
        Party(
            "Nordharzer Präzisionsteile GmbH",
            ("Gewerbepark Süd 14", "38644 Goslar"),
            "DE",
            (
                Registration("DE:VAT", "USt-IdNr.", "DE999999999"),
                Registration("DE:STNR", "St.-Nr.", "99/815/08156"),
                Registration("DE:HR", "Amtsgericht Braunschweig", "HRB 998877"),
            ),
            "+49 30 23125 417",
            "rechnung@nordharzer-praezisionsteile.example",
            "www.nordharzer-praezisionsteile.example",
        ),
        Party(
            "Bremer Anlagenbau und Instandhaltung Gebrüder Möllenkamp GmbH & Co. KG",
            ("Abteilung Kreditoren", "An der Überseekaje 211", "28237 Bremen"),
            "DE",
            (Registration("DE:VAT", "USt-IdNr.", "DE999999902"),),
            "",
            "",
            "",
        ),
    ),
    "en-US": (
        Party(
            "Cedar Ridge Supply Co.",
            ("1480 Millrace Avenue, Suite 210", "Boise, ID 83702"),
            "US",
            (Registration("US:EIN", "EIN", "00-1234567"), Registration("US:PERMIT", "Seller's permit", "SP-0048812")),
            "(208) 555-0143",
            "billing@cedarridge-supply.example",
            "www.cedarridge-supply.example",
        ),
        Party(
            "Halvorsen & Tate Mechanical Contractors LLC",
            ("Accounts Payable", "77 Foundry Street", "Spokane, WA 99201"),
            "US",
            (),
            "",
            "",
            "",
        ),
    ),
    "ja-JP": (
        Party(
            "株式会社東海精機工業",
            ("〒460-0008", "愛知県名古屋市中区栄九丁目99番9号", "東海精機ビル5階"),
            "JP",
            (Registration("JP:T", "登録番号", "T9999999999999"),),
            "052-000-0123",
            "keiri@tokai-seiki.example",
            "www.tokai-seiki.example",
        ),
        Party("北関東冷機サービス有限会社", ("〒320-0033", "栃木県宇都宮市本町十二丁目88番"), "JP", (), "", "", ""),
    ),
}

CURRENCY = {"de-DE": "EUR", "en-US": "USD", "ja-JP": "JPY"}

TAXES = {
    "de-DE": (Tax("S", Decimal(19), "USt. 19 %"), Tax("AA", Decimal(7), "USt. 7 %")),
    "en-US": (Tax("S", Decimal("8.25"), "State sales tax (8.25%)"), Tax("Z", Decimal(0), "Sales tax exempt items")),
    "ja-JP": (Tax("S", Decimal(10), "消費税 (10%対象)"), Tax("AA", Decimal(8), "消費税 (8%対象)")),
}

PRODUCTS = {
    "de-DE": (
        (
            "RK-6204-2RS",
            "Rillenkugellager 6204-2RS, beidseitig abgedichtet",
            "20 × 47 × 14 mm, Chromstahl",
            "Stk.",
            "4.85",
        ),
        ("KR-0815", "Keilriemen SPZ 1250", None, "Stk.", "12.40"),
        (
            "WL-25-1000",
            "Präzisionswelle Ø 25 mm, gehärtet und geschliffen, Toleranz h6",
            "Länge 1.000 mm",
            "m",
            "38.90",
        ),
        ("FT-400", "Lagerfett lithiumverseift, Kartusche 400 g", None, "Kart.", "6.25"),
        ("SV-STD", "Montage vor Ort durch Servicetechniker", "Arbeitszeit inkl. Anfahrt", "Std.", "89.00"),
    ),
    "en-US": (
        ("BR-6204", "Deep groove ball bearing 6204-2RS, double sealed", "20 x 47 x 14 mm", "ea", "5.35"),
        ("VB-1250", "V-belt SPZ 1250", None, "ea", "14.10"),
        ("SH-25", "Precision shaft, 1 in., case hardened and ground to h6 tolerance", "Cut to 40 in.", "ft", "11.95"),
        ("GR-14", "Lithium complex grease, 14 oz cartridge", None, "ea", "7.49"),
        ("SV-HR", "On-site installation labor", "Journeyman rate", "hr", "94.00"),
    ),
    "ja-JP": (
        ("JK-6204", "深溝玉軸受 6204ZZ", "内径20mm・外径47mm・幅14mm", "個", "485"),
        ("VB-1250", "Vベルト SPZ1250", None, "本", "1240"),
        ("SJ-25", "精密シャフト φ25(焼入研磨・公差h6)", "全長1000mm", "本", "3890"),
        ("GR-400", "リチウムグリース 400g カートリッジ", None, "本", "625.5"),
        ("OC-500", "緑茶 500ml ペットボトル(会議用)", None, "本", "98"),
    ),
}

TERMS = {
    "de-DE": "Zahlbar innerhalb von 30 Tagen ohne Abzug",
    "en-US": "Net 30",
    "ja-JP": "月末締め翌月末払い(お振込手数料は貴社にてご負担願います)",
}
PAID = {"de-DE": "Bezahlt mit Karte", "en-US": "Paid by card", "ja-JP": "クレジットカード支払"}

NOTES = {
    "de-DE": ("Lieferung frei Haus.", "Bitte geben Sie bei der Zahlung die Rechnungsnummer an."),
    "en-US": ("Please include the invoice number with your payment.",),
    "ja-JP": ("※印は軽減税率(8%)対象品目です。",),
}

ACCOUNTS = {
    "de-DE": (
        (("Bank", "Harzer Musterbank"), ("IBAN", "DE02 9999 0000 0000 0815 42"), ("BIC", "XXXXDEXXXXX")),
        ("bank_name", "iban", "bic"),
    ),
    "en-US": (
        (("Bank", "First Specimen Bank"), ("Routing no.", "000000518"), ("Account no.", "0004410077")),
        ("bank_name", "routing_number", "account_number"),
    ),
    "ja-JP": (
        (
            ("銀行", "見本銀行"),
            ("支店", "名古屋支店"),
            ("種別", "普通"),
            ("口座番号", "0123456"),
            ("口座名義", "カ)トウカイセイキコウギョウ"),
        ),
        ("bank_name", "bank_branch", "account_type", "account_number", "account_holder"),
    ),
}

PAPER = {"de-DE": "A4", "en-US": "Letter", "ja-JP": "A4"}
DATE_STYLE = {"de-DE": "dd.MM.y", "en-US": "medium", "ja-JP": "long"}
MONOGRAM = {"de-DE": "NP", "en-US": "CR", "ja-JP": "東"}


def _sales(locale: str, count: int, *, discounts: bool, graduated: bool) -> list[Sale]:
    taxes = TAXES[locale]
    sales = []
    for i in range(count):
        sku, name, detail, unit, price = PRODUCTS[locale][i % len(PRODUCTS[locale])]
        sales.append(
            Sale(
                sku if i < len(PRODUCTS[locale]) else f"{sku}-{i}",
                name,
                detail,
                Decimal(1 + i * 7 % 30),
                unit,
                "C62",
                Decimal(price) + i // len(PRODUCTS[locale]),
                taxes[i % 5 == 4],
                discount_percent=Decimal(4) if discounts and i % 3 == 1 else None,
            )
        )
    if graduated:
        bands = tuple(
            Band(Decimal(quantity), Decimal(price), limits)
            for quantity, price, limits in (
                (1000, "0.12", "1 – 1000"),
                (4000, "0.085", "1001 – 5000"),
                (2350, "0.06", "> 5000"),
            )
        )
        name = {"de-DE": "API-Abrufe, gestaffelt", "en-US": "API calls, graduated", "ja-JP": "API呼出し(段階料金)"}[
            locale
        ]
        sales.insert(1, Sale("API", name, None, Decimal(7350), "", "C62", None, taxes[0], bands=bands))
    return sales


def build(
    locale: str = "de-DE",
    layout: str = "letter",
    *,
    lines: int = 5,
    discounts: bool = False,
    graduated: bool = False,
    prepaid: str = "0",
    seed: int = 1,
    style: str = "ruled",
    accent: str = "#1f4e79",
    typeface: str = "Docgen Sans",
    paper: str | None = None,
    date_style: str | None = None,
) -> Invoice:
    """An invoice in `layout`; a receipt where the layout is one."""
    receipt = layout == "receipt"
    places = minor_units(CURRENCY[locale])
    computed = compute(
        _sales(locale, lines, discounts=discounts, graduated=graduated),
        places=places,
        policy=RoundingPolicy.PER_BUCKET,
        discount=Discount(percent=Decimal("2.5")) if discounts else None,
    )
    totals = computed.totals
    if receipt:
        totals = settle(totals, Settlement(paid_whole=True), places)
    elif Decimal(prepaid):
        totals = settle(totals, Settlement(prepaid=Decimal(prepaid)), places)
    seller, buyer = PARTIES[locale]
    account, columns = ((), ()) if receipt else ACCOUNTS[locale]
    return Invoice(
        document_id="0badcafe-0000007",
        index=7,
        company_id=12,
        catalogue_version="default",
        kind="receipt" if receipt else "invoice",
        number={"de-DE": "RE-2024-00815", "en-US": "INV-10482", "ja-JP": "SK-2024-0317"}[locale],
        issue_date=date(2024, 3, 5),
        issue_time="14:07" if receipt else None,
        due_date=None if receipt else date(2024, 4, 4),
        service_from=None if receipt else date(2024, 2, 1),
        service_to=None if receipt else date(2024, 2, 29),
        order_number=None if receipt else "B-77-4410",
        customer_number=None if receipt else "10442",
        currency=CURRENCY[locale],
        minor_units=places,
        locale=locale,
        jurisdiction=seller.country,
        business_type="industrial_supplies",
        billing_model="graduated" if graduated else "per_unit",
        rounding_policy="per_bucket",
        seller=seller,
        buyer=None if receipt else buyer,
        lines=computed.lines,
        tax_lines=computed.tax_lines,
        totals=totals,
        payment=Payment(
            PAID[locale] if receipt else TERMS[locale], "paid" if receipt else "bank_transfer", account, columns
        ),
        notes=NOTES[locale],
        identity=Identity(
            layout=layout,
            typeface="Docgen Mono" if receipt else typeface,
            accent=accent,
            monogram=MONOGRAM[locale],
            logo_seed=seed,
            table_style=style,
            date_style=date_style or DATE_STYLE[locale],
            paper="receipt" if receipt else paper or PAPER[locale],
        ),
        condition="clean",
    )


@pytest.fixture(scope="session")
def sample() -> Callable[..., Invoice]:
    """Build a sample invoice: `sample("de-DE", "letter", lines=5, discounts=True, …)`."""
    return build


@dataclass(frozen=True)
class Printed:
    """An invoice, its page, and the print of it."""

    invoice: Invoice
    page: Page
    rendered: Rendered

    def boxes(self, column: str) -> list[Box]:
        """The boxes of a column, in the order of the print log."""
        return [box for box in self.rendered.boxes if box.print.column == column]

    def texts(self) -> list[str]:
        """What poppler reads on each page, words set apart by single spaces."""
        read = subprocess.run(
            ["pdftotext", "-layout", "-", "-"], input=self.rendered.pdf, capture_output=True, check=True
        )
        return [" ".join(page.split()) for page in read.stdout.decode().split("\f")[:-1]]


@pytest.fixture(scope="session")
def printed() -> Iterator[Callable[..., Printed]]:
    """Print a sample invoice in a browser that all these tests share; the same one only once."""
    with Renderer() as renderer:

        @cache
        def make(**wanted: Any) -> Printed:
            invoice = build(**wanted)
            page = render_page(invoice)
            return Printed(invoice, page, renderer.render(page, document_id=invoice.document_id, subject="Sample"))

        yield make
