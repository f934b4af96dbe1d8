"""The catalogue's tables: companies, what they sell, and the bands of graduated prices.

The schema is declared before the first row and is the same in every shard and sink. Nothing
here identifies anyone: names, addresses and numbers are derived when a document is made.
Bands are a table of their own rather than a nested column, so that every sink keeps them alike.
"""

from __future__ import annotations

import pyarrow as pa

from docgen_core.golden import DECIMAL, column

COMPANIES = pa.schema(
    [
        column("company_id", pa.int64(), "Company, unique in the catalogue."),
        column("jurisdiction", pa.string(), "ISO 3166-1 alpha-2 code of the seller's country."),
        column("locale", pa.string(), "CLDR locale of the company's texts."),
        column("currency", pa.string(), "ISO 4217 code of every price the company asks."),
        column("minor_units", pa.int32(), "Decimal places of the currency's amounts."),
        column("business_type", pa.string(), "What kind of business it is, e.g. industrial_supplies."),
        column("niche", pa.string(), "The line within the business type, e.g. bearings."),
        column(
            "billing_model",
            pa.string(),
            "How it mainly bills: flat, per_unit, hourly, subscription, graduated, volume, metered, seats, …",
        ),
        column("document_kind", pa.string(), "What its customers mostly get: invoice or receipt."),
        column("size_class", pa.string(), "micro, small, medium or large."),
        column("founded_year", pa.int32(), "Year the business began; no document is older."),
    ]
)

PRODUCTS = pa.schema(
    [
        column("company_id", pa.int64(), "Company that sells it."),
        column("product_id", pa.int64(), "From 1 within the company."),
        column("niche", pa.string(), "Line the product belongs to; the company's own, or a sibling's in a wide range."),
        column("family", pa.string(), "Product family within the niche."),
        column("sku", pa.string(), "The company's own item number, unique within the company."),
        column("ean", pa.string(), "GTIN-13 of a restricted-circulation prefix; goods only.", nullable=True),
        column("hs_code", pa.string(), "Harmonised System subheading, six digits; goods only.", nullable=True),
        column("name", pa.string(), "As printed on a line, in the company's language; unique within the company."),
        column("description", pa.string(), "One or two sentences in the company's language."),
        column("detail", pa.string(), "Second printed line: a measure, a packing, a condition.", nullable=True),
        column("written_by", pa.string(), "Who wrote the texts: procedural, or the model's name."),
        column("unit", pa.string(), "As printed, in the company's language."),
        column("unit_code", pa.string(), "UN/ECE Recommendation 20 code of the unit."),
        column("currency", pa.string(), "ISO 4217 code of the price."),
        column("unit_price", DECIMAL, "Net price of one unit; the first band's where the price is graduated."),
        column("price_places", pa.int32(), "Decimal places the price is quoted with; may exceed the minor units."),
        column("tax_class", pa.string(), "standard, reduced or exempt, in the company's jurisdiction."),
        column("tax_category", pa.string(), "UNCL 5305: S standard, AA reduced, E exempt. A buyer's state may differ."),
        column("billing_model", pa.string(), "How this product is billed: flat, per_unit, hourly, …"),
        column("recurring_period", pa.string(), "month, quarter or year; none for what is billed once.", nullable=True),
        column("typical_quantity_min", DECIMAL, "Smallest quantity usual on an invoice line."),
        column("typical_quantity_max", DECIMAL, "Largest quantity usual on an invoice line."),
        column("typical_quantity_step", DECIMAL, "Usual quantities are the minimum plus a multiple of this."),
    ]
)

PRICE_TIERS = pa.schema(
    [
        column("company_id", pa.int64(), "Company that sells the product."),
        column("product_id", pa.int64(), "Product with a graduated price."),
        column("tier", pa.int32(), "From 1, in order of quantity."),
        column("up_to", DECIMAL, "Quantity at which the band ends, included; none in the last band.", nullable=True),
        column("unit_price", DECIMAL, "Net price of one unit within the band."),
    ]
)
"""Graduated: each band's price holds for the part of the quantity that falls in the band."""

CATALOGUE_TABLES: dict[str, pa.Schema] = {
    "companies": COMPANIES,
    "products": PRODUCTS,
    "price_tiers": PRICE_TIERS,
}
