"""How a form is filled in by hand: which hand and ink a company has, and how far off its line a value stands.

What does not belong here: the faces (render/fonts), and the form itself (templates/pad).
"""

from __future__ import annotations

from docgen_core.draws import Draws
from docgen_core.packs.invoice.layouts.sheet import Sheet

_HANDS = {"Docgen Hand": "13.5pt", "Docgen Pen": "10.2pt", "Docgen Marker": "9.6pt"}
"""Faces, each in the size at which it writes as large as the others."""
_INKS = ("#1c2f6b", "#232323", "#20408f", "#16325c")
_TURN_TENTHS, _SHIFT_HUNDREDTHS = 8, 45
"""Most that a value is turned, in tenths of a degree, and shifted, in hundredths of a millimetre."""


class Hand:
    """The hand that filled in one sheet."""

    def __init__(self, sheet: Sheet) -> None:
        habits = sheet.habits.under("hand")
        self._face = habits.choice("face", tuple(_HANDS))
        self._ink = habits.choice("ink", _INKS)
        self._draws = Draws("jitter", sheet.invoice.document_id)
        self._written = 0

    def style(self) -> dict[str, str]:
        """What the style sheet needs to know of it."""
        stack = f'"{self._face}", "Docgen Sans", "Docgen JP"'
        return {"hand_stack": stack, "hand_size": _HANDS[self._face], "hand_ink": self._ink}

    def jitter(self, long: bool) -> str:
        """CSS that sets the next value a little off its line; a long one keeps level."""
        self._written += 1
        draws = self._draws.under(self._written)
        turn = 0 if long else draws.integer("turn", -_TURN_TENTHS, _TURN_TENTHS) / 10
        right, down = (draws.integer(way, -_SHIFT_HUNDREDTHS, _SHIFT_HUNDREDTHS) / 100 for way in ("right", "down"))
        return f"transform:translate({right}mm,{down}mm) rotate({turn}deg)"
