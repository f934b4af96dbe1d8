"""Which software decides bytes. It stands in the plan, and a worker with other software stays out.

What does not belong here: what a run makes (spec.py). The fingerprint is no part of the spec:
the same spec planned with other software is the same wish, kept with other bytes.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path

import docgen_core
from docgen_core.canonical import canonical_json, sha256_hex
from docgen_core.errors import FingerprintMismatch
from docgen_core.state.contract import RunKind

LIBRARIES = (
    "babel",
    "jinja2",
    "markupsafe",
    "numpy",
    "opencv-python-headless",
    "pikepdf",
    "pillow",
    "pyarrow",
    "pypdfium2",
    "python-stdnum",
)
"""Distributions whose release can change a published byte."""

DECIDING = (
    *("packs", "render", "canonical.py", "draws.py", "golden.py", "locales.py", "money.py"),
    *(
        f"runs/{name}.py"
        for name in ("columns", "growth", "keys", "labels", "manifest", "selection", "shards", "source", "spec", "unit")
    ),
)
"""Files and rooms of this package that can change a published byte."""

_FONTS = (".woff2", ".ttf")
"""Named by the fonts' own fingerprint."""


def current_fingerprint(kind: RunKind, pack_version: str) -> dict[str, str]:
    """The software of this process. A catalogue's bytes depend on no browser and no font."""
    common = {
        "docgen": f"{docgen_core.__version__}+{_sources_digest()}",
        "pack": pack_version,
        "libraries": _libraries_digest(),
        # Its tables of characters decide normal forms and widths; they change with the minor version.
        "unicode": unicodedata.unidata_version,
    }
    return common if kind is RunKind.CATALOGUE else {**common, **_drawing()}


def check_fingerprint(run_id: str, planned: Mapping[str, str], here: Mapping[str, str]) -> None:
    """Raise `FingerprintMismatch` naming everything in which this process differs from the plan."""
    differences = [
        f"{name}: the plan names {planned.get(name, 'none')}, here is {here.get(name, 'none')}{_detail(name)}"
        for name in sorted({*planned, *here})
        if planned.get(name) != here.get(name)
    ]
    if differences:
        raise FingerprintMismatch(run_id, differences)


@cache
def library_versions() -> dict[str, str]:
    """Versions of the libraries that decide bytes, and of the PDF library inside one of them."""
    import pikepdf

    return {**{name: version(name) for name in LIBRARIES}, "qpdf": pikepdf.__libqpdf_version__}


@cache
def _sources_digest() -> str:
    """Of every file of the packages that decide bytes, so that two checkouts of one version are told apart."""
    root = Path(docgen_core.__file__).parent
    files = sorted(
        path.relative_to(root).as_posix()
        for room in DECIDING
        for path in ([root / room] if (root / room).is_file() else (root / room).rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    )
    lines = [f"{name} {sha256_hex((root / name).read_bytes())}" for name in files if not name.endswith(_FONTS)]
    return sha256_hex("\n".join(lines).encode())[:12]


def _libraries_digest() -> str:
    return sha256_hex(canonical_json(library_versions()))


@cache
def _drawing() -> dict[str, str]:
    from docgen_core.render import fonts
    from docgen_core.render.chromium import chromium_version, find_chromium

    return {"chromium": chromium_version(find_chromium()), "fonts": fonts.fingerprint()}


def _detail(name: str) -> str:
    if name != "libraries":
        return ""
    return f" ({', '.join(f'{library} {found}' for library, found in library_versions().items())})"
