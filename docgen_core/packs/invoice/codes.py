"""What the bar codes and matrix codes of a document say, exactly as a reader decodes them.

Which codes a document has is a habit of its company: the document's number in Code 128, articles'
numbers as EAN-13, the number and amount or a SEPA credit transfer (EPC069-12) in a QR code.
Article numbers begin with 2, the range kept for shops' own use, so that they name nobody's goods.
What does not belong here: drawing them (layouts/codes.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from stdnum import ean

from docgen_core.draws import Draws
from docgen_core.money import plain
from docgen_core.packs.invoice.catalogue import content
from docgen_core.packs.invoice.model import Invoice, Line, LineKind

CODE_128, EAN_13, QR = "code_128", "ean_13", "qr"
"""Symbologies."""
NUMBER, ARTICLE, AMOUNT, CREDIT_TRANSFER = "number", "article", "amount", "credit_transfer"
"""What a code is for."""

_NUMBER_PER_MILLE, _ARTICLES_PER_MILLE, _QR_PER_MILLE = 300, 350, 420
"""Companies that print such a code."""
_MOST_ARTICLES = 12
"""Lines up to which a document shows its articles' codes."""
_WITHOUT_CODES = frozenset({"pad"})
"""Layouts that are filled in by hand."""
_ARTICLE_LAYOUTS = frozenset({"letter", "ledger", "boxed", "banner", "statement", "medical"})
_SERVED = frozenset({"HUR", "DAY", "MON", "ANN", "LS", "MIN"})
"""Units of what is done and not handed over."""
_OWN_USE = "2"
_EAN_DIGITS = 11
"""Digits between the prefix and the check digit."""
_MOST_NAME, _MOST_REFERENCE = 70, 140
"""Characters that EPC069-12 has room for."""
_MOST_ASCII = 127


@dataclass(frozen=True, slots=True)
class Code:
    """A code on a document."""

    number: int
    """From 1, the lines' first; `row_key` is its decimal form."""
    symbology: str
    purpose: str
    text: str
    """As decoded."""
    line_number: int | None
    """The line whose article it names."""


def codes_of(invoice: Invoice) -> tuple[Code, ...]:
    """The codes of a document."""
    if invoice.layout in _WITHOUT_CODES:
        return ()
    found = (*_articles(invoice), *_of_the_document(invoice))
    return tuple(Code(number, *told) for number, told in enumerate(found, start=1))


_Told = tuple[str, str, str, int | None]


def _articles(invoice: Invoice) -> Iterator[_Told]:
    habits = _habits(invoice)
    if invoice.layout not in _ARTICLE_LAYOUTS or not _sells_goods(invoice.business_type):
        return
    if len(invoice.lines) > _MOST_ARTICLES or not habits.chance("articles", _ARTICLES_PER_MILLE):
        return
    for line in invoice.lines:
        if line.kind is LineKind.ITEM and line.sku and line.unit_code not in _SERVED:
            yield EAN_13, ARTICLE, _article_number(invoice.company_id, line), line.number


def _of_the_document(invoice: Invoice) -> Iterator[_Told]:
    habits = _habits(invoice)
    if habits.chance("number", _NUMBER_PER_MILLE) and all(ord(char) <= _MOST_ASCII for char in invoice.number):
        yield CODE_128, NUMBER, invoice.number, None
    if invoice.kind == "invoice" and habits.chance("matrix", _QR_PER_MILLE):
        transfer = _credit_transfer(invoice)
        if transfer:
            yield QR, CREDIT_TRANSFER, transfer, None
        else:
            amount = plain(invoice.totals.amount_due, invoice.minor_units)
            yield QR, AMOUNT, f"{invoice.number};{invoice.issue_date.isoformat()};{invoice.currency};{amount}", None


def _credit_transfer(invoice: Invoice) -> str | None:
    """The lines of a SEPA credit transfer's code, where the amount due can be paid by one."""
    account = {
        column: value
        for column, (_, value) in zip(invoice.payment.account_columns, invoice.payment.account, strict=True)
    }
    if invoice.currency != "EUR" or "iban" not in account or invoice.totals.amount_due <= 0:
        return None
    amount = plain(invoice.totals.amount_due, invoice.minor_units)
    return "\n".join(
        (
            "BCD",
            "002",
            "1",  # UTF-8
            "SCT",
            account.get("bic", "").replace(" ", ""),
            invoice.seller.name[:_MOST_NAME],
            account["iban"].replace(" ", ""),
            f"EUR{amount}",
            "",
            "",
            invoice.number[:_MOST_REFERENCE],
        )
    )


def _article_number(company_id: int, line: Line) -> str:
    digits = Draws("article number", company_id, line.sku).integer("digits", 0, 10**_EAN_DIGITS - 1)
    body = f"{_OWN_USE}{digits:0{_EAN_DIGITS}d}"
    return body + str(ean.calc_check_digit(body))


@cache
def _sells_goods(business_type: str) -> bool:
    kind = content.business_types().get(business_type)
    families = [family for niche in kind.niches.values() for family in niche] if kind else []
    return 2 * sum(family.goods for family in families) > len(families)


def _habits(invoice: Invoice) -> Draws:
    return Draws("codes", invoice.company_id, invoice.identity.logo_seed)
