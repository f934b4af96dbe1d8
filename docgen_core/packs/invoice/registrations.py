"""Tax, register and bank numbers: right in shape and check digit, from ranges that nobody is known to hold.

Each function says which range it takes, and why nobody should hold the number. Few countries publish
a range that is kept free; elsewhere it is one that the numbers in use stay clear of, as far as we
know. Check digits are python-stdnum's. What does not belong here: numbers of a country whose module
has its own.
"""

from __future__ import annotations

import re
import unicodedata

from stdnum import iban as iban_numbers
from stdnum.iso7064 import mod_11_10
from stdnum.jp import cn as corporate_numbers
from stdnum.us import rtn as routing_numbers

from docgen_core.draws import Draws


def german_vat_id(draws: Draws) -> str:
    """USt-IdNr. with its check digit, from 99…: the numbers given out begin with 1 to 3 and with 8."""
    body = f"99{draws.integer('vat id', 0, 999_999):06d}"
    return f"DE{body}{mod_11_10.calc_check_digit(body)}"


_TAX_NUMBER_SHAPES = {
    "BW": "##ddd/#####",
    "BY": "1##/ddd/#####",
    "BE": "##/ddd/#####",
    "BB": "0##/ddd/#####",
    "HB": "## ddd #####",
    "HH": "##/ddd/#####",
    "HE": "0## ddd #####",
    "MV": "0##/ddd/#####",
    "NI": "##/ddd/#####",
    "NW": "1##/dddd/####",
    "RP": "##/ddd/#####",
    "SL": "0##/ddd/#####",
    "SN": "2##/ddd/#####",
    "ST": "1##/ddd/#####",
    "SH": "## ddd #####",
    "TH": "1##/ddd/#####",
}
"""How each Land writes a Steuernummer: # any digit, d the district."""


def german_tax_number(draws: Draws, land: str) -> str:
    """Steuernummer in the Land's form, with a district below 100: districts begin there."""
    shape = _TAX_NUMBER_SHAPES[land]
    district = draws.integer("district", 0, 99)
    shape = re.sub("d+", lambda field: f"{district:0{len(field.group())}d}", shape)
    return filled(shape, f"{draws.integer('tax number', 1, 9_999_999):07d}")


def filled(shape: str, digits: str) -> str:
    """The shape with its every `#` as the next of the digits."""
    following = iter(digits)
    return re.sub("#", lambda _: next(following), shape)


def german_register_entry(draws: Draws, court: str, form: str) -> str:
    """Handelsregister entry, partnerships in section A, from 900000 on: no court has counted so far."""
    section = "HRA" if form.endswith("KG") else "HRB"
    return f"Amtsgericht {court}, {section} {draws.integer('register', 900_000, 999_999)}"


NEVER_ISSUED_EIN_PREFIXES = ("07", "08", "09", "17", "18", "19", "28", "29", "49", "69", "70", "78", "79", "89", "96")
"""Not in the list of valid prefixes that the Internal Revenue Service publishes."""


def american_ein(draws: Draws) -> str:
    """An employer identification number's shape, with a prefix that no campus issues."""
    return f"{draws.choice('ein prefix', NEVER_ISSUED_EIN_PREFIXES)}-{draws.integer('ein', 0, 9_999_999):07d}"


def american_permit(draws: Draws, state: str) -> str:
    """A sales-tax permit in a shape of our own, which is no state's: the state, 00 and six digits."""
    return f"{state}-00{draws.integer('permit', 0, 999_999):06d}"


_KIND_DIGITS = {"株式会社": "01", "合同会社": "03"}


def japanese_corporate_number(draws: Draws, form: str) -> str:
    """法人番号: check digit, register office, kind of company, serial.

    The office is 99xx, which is no register office's number, so no company has such a number.
    """
    body = f"99{draws.integer('office', 1, 99):02d}{_KIND_DIGITS[form]}{draws.integer('corporate', 1, 999_999):06d}"
    return f"{corporate_numbers.calc_check_digit(body)}{body}"


def of_bank(name: str) -> Draws:
    """What a bank's own numbers are drawn from, so that it has the same ones whoever banks there."""
    return Draws("bank", name)


def drawn_digits(draws: Draws, name: str, count: int) -> str:
    """So many random digits."""
    return f"{draws.integer(name, 0, 10**count - 1):0{count}d}"


def bank_letters(bank_name: str, count: int) -> str:
    """The first letters of a bank's name, in capitals of the Latin alphabet."""
    decomposed = unicodedata.normalize("NFKD", bank_name.upper())
    return re.sub(r"[^A-Z]", "", decomposed)[:count].ljust(count, "X")


def iban(country: str, pattern: str, draws: Draws, bank_name: str) -> str:
    """An IBAN in groups of four, of a bank code that the country gives to nobody.

    Args:
        country: ISO 3166-1 alpha-2.
        pattern: `b` is a digit and `B` a letter of the bank, `a` a digit of the account; digits that
            stand for themselves put the bank outside the codes in use.
        draws: Of the account.
        bank_name: Whose code it is.
    """
    letters = iter(bank_letters(bank_name, pattern.count("B")))
    codes = iter(drawn_digits(of_bank(bank_name), "bank code", pattern.count("b")))
    account = iter(drawn_digits(draws, "account", pattern.count("a")))
    sources = {"B": letters, "b": codes, "a": account}
    return with_check_digits(country, "".join(next(sources[sign]) if sign in sources else sign for sign in pattern))


def with_check_digits(country: str, bban: str) -> str:
    """The IBAN of a country's account, in groups of four."""
    digits = f"{country}{iban_numbers.calc_check_digits(f'{country}00{bban}')}{bban}"
    return " ".join(digits[i : i + 4] for i in range(0, len(digits), 4))


_BIC_TOWNS = "BFHKMS"


def bic(country: str, bank_name: str) -> str:
    """A BIC whose eighth character is 0, which marks test codes and never a bank in service."""
    return f"{bank_letters(bank_name, 4)}{country}{of_bank(bank_name).choice('bic town', _BIC_TOWNS)}0XXX"


UNASSIGNED_ROUTING_PREFIXES = ("13", "14", "15", "16", "17", "18", "19", "33", "34", "35", "41", "47", "52", "58", "59")
"""Between the ranges 00-12, 21-32, 61-72 and 80 that the American Bankers Association assigns."""


def american_routing_number(bank_name: str) -> str:
    """The bank's routing number with its checksum, in no Federal Reserve district."""
    bank = of_bank(bank_name)
    body = f"{bank.choice('routing prefix', UNASSIGNED_ROUTING_PREFIXES)}{bank.integer('routing', 0, 999_999):06d}"
    return f"{body}{routing_numbers.calc_check_digit(body)}"
