"""Descriptions of products that language models may write: what they are told, and what is put in its place.

Names, codes, prices and units stay as they were drawn: they belong together, and a text must not
contradict them. What does not belong here: how models are asked (docgen_core.llm).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from docgen_core.llm.items import TextItem, Written
from docgen_core.packs.contract import Rows


def text_items(rows: Rows) -> Sequence[TextItem]:
    """An item for each product of the company."""
    (company,) = rows["companies"]
    return [
        TextItem(
            id=_item_id(product["company_id"], product["product_id"]),
            group=str(company["company_id"]),
            language=company["locale"].partition("-")[0],
            setting=f"{_plain(company['business_type'])}: {_plain(product['niche'])}",
            subject=_subject(product["name"], product["detail"]),
            procedural=product["description"],
        )
        for product in rows["products"]
    ]


def with_texts(rows: Rows, texts: Mapping[str, Written]) -> Rows:
    """The rows with each text as its product's description, and its model as who wrote it."""
    products = [
        {**product, "description": text.text, "written_by": text.model}
        if (text := texts.get(_item_id(product["company_id"], product["product_id"])))
        else product
        for product in rows["products"]
    ]
    return {**rows, "products": products}


def _item_id(company_id: int, product_id: int) -> str:
    return f"{company_id}/{product_id}"


def _plain(name: str) -> str:
    return name.replace("_", " ")


def _subject(name: str, detail: str | None) -> str:
    return f"{name} ({detail})" if detail and detail not in name else name
