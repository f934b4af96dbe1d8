"""YAML as people write it here: numbers are what they look like, and no name stands twice.

What does not belong here: what a file means (its reader), and where it came from.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import yaml

from docgen_core.errors import UsageError

_WITH_EXPONENT = re.compile(r"[-+]?\d+(?:\.\d*)?[eE][-+]?\d+$")
"""A number in JSON, which YAML would take for a text."""
_FLOAT, _INT, _DAY = (f"tag:yaml.org,2002:{name}" for name in ("float", "int", "timestamp"))


class _Loader(yaml.SafeLoader):
    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen: set[Any] = set()
        for name, _ in node.value:
            if isinstance(name, yaml.ScalarNode):
                if name.value in seen:
                    raise _StandsTwice(name.start_mark.line + 1, name.value)
                seen.add(name.value)
        return super().construct_mapping(node, deep)

    def construct_exact(self, node: Any) -> Any:
        written = self.construct_scalar(node).replace("_", "")
        plain = re.fullmatch(r"[-+]?[\d.]+(?:[eE][-+]?\d+)?", written)
        return Decimal(written) if plain else self.construct_yaml_float(node)  # .inf, .nan

    def construct_plain_int(self, node: Any) -> Any:
        """As people read it: 010 is ten, and 1:30 no number of minutes."""
        written = self.construct_scalar(node).replace("_", "")
        if ":" in written:
            return node.value
        return int(written) if re.fullmatch(r"[-+]?\d+", written) else self.construct_yaml_int(node)  # 0x1F

    def construct_day(self, node: Any) -> Any:
        """A day, or the text where the calendar has no such day: whoever reads it says so better."""
        try:
            return self.construct_yaml_timestamp(node)
        except ValueError:
            return node.value


_Loader.add_constructor(_FLOAT, _Loader.construct_exact)
_Loader.add_constructor(_INT, _Loader.construct_plain_int)
_Loader.add_constructor(_DAY, _Loader.construct_day)
_Loader.add_implicit_resolver(_FLOAT, _WITH_EXPONENT, list("-+0123456789"))


class _StandsTwice(Exception):
    def __init__(self, line: int, name: str) -> None:
        super().__init__(name)
        self.line, self.name = line, name


def read_yaml(text: str, what: str) -> Any:
    """The content of a YAML text; `what` names it in the `UsageError` for one that is none."""
    try:
        return yaml.load(text, _Loader)
    except _StandsTwice as double:
        raise UsageError(f"{what}, line {double.line}: {double.name!r} stands there twice") from None
    except (yaml.YAMLError, ValueError, ArithmeticError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise UsageError(
            f"{what}{where} is not YAML: {getattr(error, 'problem', None) or 'it cannot be read'}"
        ) from None
