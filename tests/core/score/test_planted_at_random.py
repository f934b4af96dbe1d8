"""Errors planted at random, one a document: the score loses what was planted, in its field, and nothing else."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from typing import Any

from docgen_core.score.counting import Outcome

RIGHT, WRONG, MISSING, SPURIOUS = Outcome.RIGHT, Outcome.WRONG, Outcome.MISSING, Outcome.SPURIOUS
TRIALS, FULL_TRIALS = 3, 60

Losses = Counter[tuple[str, Outcome]]


def name(table: str, column: str) -> str:
    return column if table == "invoices" else f"{table}.{column}"


def an_amount(tables: Any, chance: random.Random, losses: Losses) -> None:
    head = tables["invoices"][0]
    head["gross_total"] = str(Decimal(head["gross_total"]) + chance.choice([Decimal("0.01"), Decimal(-1)]))
    losses.update({("gross_total", RIGHT): -1, ("gross_total", WRONG): 1})


def a_date(tables: Any, chance: random.Random, losses: Losses) -> None:
    tables["invoices"][0]["issue_date"] = f"19{chance.randrange(50, 99)}-01-01"
    losses.update({("issue_date", RIGHT): -1, ("issue_date", WRONG): 1})


def a_value_lost(tables: Any, chance: random.Random, losses: Losses) -> None:
    head = tables["invoices"][0]
    column = chance.choice(sorted(head))
    head[column] = chance.choice([None, "", "  "])
    losses.update({(column, RIGHT): -1, (column, MISSING): 1})


def a_row_lost(tables: Any, chance: random.Random, losses: Losses) -> None:
    rows = tables["line_items"]
    for column in rows.pop(chance.randrange(len(rows))):
        losses.update({(name("line_items", column), RIGHT): -1, (name("line_items", column), MISSING): 1})


def a_row_twice(tables: Any, chance: random.Random, losses: Losses) -> None:
    rows = tables["line_items"]
    twice = dict(chance.choice(rows))
    rows.insert(chance.randrange(len(rows) + 1), twice)
    losses.update({(name("line_items", column), SPURIOUS): 1 for column in twice})


def rows_in_another_order(tables: Any, chance: random.Random, losses: Losses) -> None:
    for rows in tables.values():
        chance.shuffle(rows)


def everything_lost(tables: Any, chance: random.Random, losses: Losses) -> None:
    for table, rows in tables.items():
        for row in rows:
            for column in row:
                losses.update({(name(table, column), RIGHT): -1, (name(table, column), MISSING): 1})
    tables.clear()


ERRORS = (an_amount, a_date, a_value_lost, a_row_lost, a_row_twice, rows_in_another_order, everything_lost)


def counted(scores: Any) -> Losses:
    fields = scores.fields.items()
    return Counter({(field, outcome): tally.outcomes[outcome] for field, tally in fields for outcome in Outcome})


def test_a_score_loses_what_was_planted_and_nothing_else(corpus: Any, full_figures: bool) -> None:
    for trial in range(FULL_TRIALS if full_figures else TRIALS):
        chance, said, losses = random.Random(trial), corpus.copy(), Losses()
        for tables in said.values():
            chance.choice(ERRORS)(tables, chance, losses)
        before, after = counted(corpus.before), counted(corpus.score(said))
        for outcome in (RIGHT, WRONG, MISSING, SPURIOUS):
            fields = {field for field, of in before.keys() | after.keys() | losses.keys() if of is outcome}
            found = {field: after[field, outcome] - before[field, outcome] for field in fields}
            assert found == {field: losses[field, outcome] for field in fields}, (trial, outcome)
