"""A deliberately simple extractor: pdftotext and a few rules. It is here to be scored, and to be beaten.

    python deploy/extractor.py invoice.pdf … > predictions.jsonl
    docgen score RUN predictions.jsonl

It knows nothing of docgen but the names of the fields, and nothing of a page but its text.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

DATE = re.compile(
    r"\d{4}-\d{2}-\d{2}|\d{4}年\d{1,2}月\d{1,2}日|\d{4}/\d{2}/\d{2}|\d{1,2}[./]\d{1,2}[./]\d{4}"
    r"|(?:[A-Z][a-z]{2,8}\.? \d{1,2}, |\d{1,2}\.? (?:de )?[A-Za-zäéû]{3,10}\.? (?:de )?)\d{4}"
)
AMOUNT = re.compile(
    r"(?<![\d.,])-?\d{1,3}(?:[.,' \u00a0\u202f]\d{3})*[.,]\d{2}(?![\d.,]*\d)"
    r"|(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d.,]*\d)"
)
PATTERNS = {
    "number": re.compile(r"\b[A-Z]{0,4}-?\d{2,4}[-/]\d{3,8}\b"),
    "iban": re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b"),
    "bic": re.compile(r"(?:BIC|SWIFT)\W{1,20}([A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?)\b"),
    "routing_number": re.compile(r"[Rr]outing\D{1,20}(\d{9})\b"),
    "seller_tax_id": re.compile(r"\b(?:[A-Z]{2}\d{9}|\d{2}-\d{7}|T\d{13})\b"),
    "seller_email": re.compile(r"[\w.-]+@[\w.-]+\.[a-z]+"),
    "seller_website": re.compile(r"www\.[\w.-]+\.[a-z]+"),
}
LINE = re.compile(r"^\s*(?:\d{1,3}\.?\s+)?(?P<description>\S.{3,}?)\s{2,}.*?(?P<net_amount>\S*\d)\s*\S{0,3}$")
FEWEST_NUMBERS = 2
"""On a line of items: a quantity or a price, and what it comes to."""


def text_of(path: Path) -> str:
    """The text layer of a PDF; nothing for a picture."""
    return subprocess.run(["pdftotext", "-layout", path, "-"], capture_output=True, check=True).stdout.decode()


def extract(path: Path) -> dict[str, object]:
    """What the rules make of a PDF, by the golden set's fields."""
    text = text_of(path)
    found: dict[str, object] = {"document_id": path.name}
    for field, pattern in PATTERNS.items():
        if match := pattern.search(text):
            found[field] = match[match.lastindex or 0]
    dates = [match.group() for match in DATE.finditer(text)]
    if dates:
        found["issue_date"] = dates[0]
    if len(dates) > 1:
        found["due_date"] = dates[1]
    amounts = [match.group() for match in AMOUNT.finditer(text)]
    if amounts:
        found["gross_total"] = found["amount_due"] = max(amounts, key=size)
    found["line_items"] = list(lines(text))
    return found


def lines(text: str) -> Iterator[dict[str, str]]:
    """What looks like a line of items: words, then a gap, then numbers, an amount at the end."""
    for line in text.splitlines():
        match = LINE.match(line)
        if match and AMOUNT.fullmatch(match["net_amount"]) and len(AMOUNT.findall(line)) >= FEWEST_NUMBERS:
            yield match.groupdict()


def size(amount: str) -> int:
    """By its digits: which amount of a page is the largest, whatever marks they have."""
    return int(re.sub(r"\D", "", amount))


def main() -> int:
    """Predictions of the files that are named, one JSON object a line."""
    for name in sys.argv[1:]:
        sys.stdout.write(json.dumps(extract(Path(name)), ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
