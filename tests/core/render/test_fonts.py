"""The bundled faces: what they draw, what they refuse, and that the table tells the truth about the files."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib import TTFont

from docgen_core.errors import GlyphMissing, UsageError
from docgen_core.render import fonts
from docgen_core.render.fonts import FACES, FONTS_DIRECTORY, FaceSet

NAMES_OF_CASE_23 = ("Ölfilter 5 µm - 12 €", "軸受 6204", "Лента 50 m", "حامل محرك", "Schlüssel 🔧")


@pytest.fixture(scope="session")
def narrow_faces(tmp_path_factory: pytest.TempPathFactory) -> FaceSet:
    """One face that covers exactly U+0020-U+024F, U+202F and U+20AC."""
    folder: Path = tmp_path_factory.mktemp("faces")
    codes = [*range(0x20, 0x250), 0x202F, 0x20AC]
    names = {code: f"g{code:04X}" for code in codes}
    pen = TTGlyphPen(None)
    for move, point in ((pen.moveTo, (50, 0)), (pen.lineTo, (50, 700)), (pen.lineTo, (450, 700))):
        move(point)
    pen.closePath()
    glyph, blank = pen.glyph(), TTGlyphPen(None).glyph()
    order = [".notdef", *names.values()]
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder(order)
    builder.setupCharacterMap(names)
    builder.setupGlyf({name: blank if name in ("g0020", "g00A0", "g202F") else glyph for name in order})
    builder.setupHorizontalMetrics(dict.fromkeys(order, (500, 50)))
    builder.setupHorizontalHeader(ascent=900, descent=-300)
    builder.setupNameTable({"familyName": "Narrow", "styleName": "Regular", "psName": "Narrow-Regular"})
    builder.setupOS2(sTypoAscender=900, sTypoDescender=-300)
    builder.setupPost()
    builder.save(folder / "Narrow-Regular.ttf")
    digest = hashlib.sha256((folder / "Narrow-Regular.ttf").read_bytes()).hexdigest()
    header = "family\tweight\tfile\tpackage\tversion\tlicence\tsha256"
    (folder / "faces.tsv").write_text(f"{header}\nNarrow\t400\tNarrow-Regular.ttf\ttest\t1\tnone\t{digest}\n")
    return FaceSet.load(folder)


def test_a_text_inside_the_ranges_of_a_face_is_drawn(narrow_faces: FaceSet) -> None:
    assert narrow_faces.coverage("Narrow") == {*range(0x20, 0x250), 0x202F, 0x20AC}
    narrow_faces.check(NAMES_OF_CASE_23[0], ("Narrow",))
    narrow_faces.check("1\u202f234,00 €", ("Narrow",))


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        (NAMES_OF_CASE_23[1], ["U+53D7", "U+8EF8"]),
        (NAMES_OF_CASE_23[2], ["U+041B", "U+0430", "U+0435", "U+043D", "U+0442"]),
        (NAMES_OF_CASE_23[3], ["U+0627", "U+062D", "U+0631", "U+0643", "U+0644", "U+0645"]),
        (NAMES_OF_CASE_23[4], ["U+1F527"]),
    ],
)
def test_a_text_outside_them_is_refused_naming_each_code_point(
    narrow_faces: FaceSet, text: str, listed: list[str]
) -> None:
    with pytest.raises(GlyphMissing) as refused:
        narrow_faces.check(text, ("Narrow",))
    assert re.findall(r"U\+[0-9A-F]+", str(refused.value)) == listed
    assert str(refused.value).count("\n") == 0


def test_the_bundled_faces_draw_latin_japanese_and_cyrillic_and_refuse_the_rest() -> None:
    for text in NAMES_OF_CASE_23[:3]:
        fonts.check(text)
    with pytest.raises(GlyphMissing, match="U\\+0627"):
        fonts.check(NAMES_OF_CASE_23[3])
    with pytest.raises(GlyphMissing, match="U\\+1F527"):
        fonts.check(NAMES_OF_CASE_23[4])


def test_a_decomposed_letter_is_taken_as_it_is_printed() -> None:
    fonts.check("O\u0308lfilter")
    with pytest.raises(GlyphMissing, match="U\\+0308"):
        fonts.check("q\u0308")  # no composed form


@pytest.mark.parametrize("invisible", ["\u00ad", "\u200b", "\u202e", "\ufeff"])
def test_characters_that_print_nothing_are_refused(invisible: str) -> None:
    with pytest.raises(GlyphMissing):
        fonts.check(f"a{invisible}b")


def test_a_stack_covers_what_any_of_its_faces_covers() -> None:
    with pytest.raises(GlyphMissing):
        fonts.check("軸受", ("Docgen Mono",))
    fonts.check("軸受 ¥1,234", ("Docgen Mono", "Docgen JP"))


HANDS = ("Docgen Hand", "Docgen Pen", "Docgen Marker")
"""What these lack, the faces after them in the stack draw."""
EAST_ASIAN = ("Docgen JP", "Docgen JP Serif", "Docgen KR")


@pytest.mark.parametrize("family", HANDS)
def test_the_hands_write_the_letters_of_every_bundled_latin_language(family: str) -> None:
    written = "ÄÖÜäöüßÀÂÇÉÈÊËÎÏÔŒÙÛàâçéèêëîïôœùûÁÍÑÓÚáíñóú¿¡ÃÕãõĄĆĘŁŃŚŹŻąćęłńśźżÅåĞİŞğışØø–−×€£₺"
    assert not set(map(ord, written)) - fonts.coverage(family)


@pytest.mark.parametrize("family", [family for family in FACES.families if family not in HANDS])
def test_every_family_draws_what_a_document_needs(family: str) -> None:
    covered = fonts.coverage(family)
    latin = [*range(0x20, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    if family not in EAST_ASIAN:
        latin += [code for code in range(0x100, 0x180) if chr(code) not in "ŉſĬĭĲĳŦŧ"]
    needed = "".join(map(chr, latin)) + "\u00a0\u2009\u202f\u2007–—‑−×÷€£¥‘’“”„‚•…†‡‰"
    assert not [f"U+{ord(char):04X}" for char in needed if ord(char) not in covered]


@pytest.mark.parametrize("family", ["Docgen JP", "Docgen JP Serif"])
def test_the_japanese_families_draw_jis_levels_1_and_2_and_the_signs_of_trade(family: str) -> None:
    kanji = "".join(
        bytes([row + 0xA0, cell + 0xA0]).decode("euc_jp", errors="ignore")
        for row in range(16, 85)
        for cell in range(1, 95)
    )
    assert len(kanji) == 6355
    signs = "〒〜～−－・※㈱㈲①②③㎡℃ｱｲｳ（）「」、。￥％＋髙﨑"
    assert not {char for char in kanji + signs if ord(char) not in fonts.coverage(family)}


def test_the_korean_family_draws_the_syllables_of_ks_x_1001_and_the_signs_of_trade() -> None:
    syllables = "".join(bytes([row, cell]).decode("euc_kr") for row in range(0xB0, 0xC9) for cell in range(0xA1, 0xFF))
    assert len(syllables) == 2350
    assert not {char for char in syllables + "₩￦㈜㎡℃①②③·「」※" if ord(char) not in fonts.coverage("Docgen KR")}


@pytest.mark.parametrize("face", FACES.faces, ids=lambda face: face.path.stem)
def test_a_face_is_the_file_the_table_lists_and_gives_each_character_a_glyph_of_its_own(face: fonts.Face) -> None:
    assert hashlib.sha256(face.path.read_bytes()).hexdigest() == face.sha256
    with TTFont(face.path) as font:
        glyphs = list(font.getBestCmap().values())
        assert len(glyphs) == len(set(glyphs))
        assert font["name"].getDebugName(6) == face.path.stem
        digits = {font["hmtx"][font.getBestCmap()[code]][0] for code in range(0x30, 0x3A)}
        assert len(digits) == 1 or face.family in ("Docgen JP Serif", *HANDS)


def test_each_family_has_two_weights_and_a_licence_and_all_are_small() -> None:
    assert FACES.families == (
        "Docgen Sans",
        "Docgen Serif",
        "Docgen Mono",
        "Docgen Condensed",
        "Docgen JP",
        "Docgen JP Serif",
        "Docgen KR",
        "Docgen Geometric",
        "Docgen Slab",
        "Docgen Hand",
        "Docgen Pen",
        "Docgen Marker",
    )
    for family in FACES.families:
        assert [face.weight for face in FACES.of(family)] == [400, 700]
        licence = FONTS_DIRECTORY / "licences" / f"{family.replace(' ', '')}.txt"
        assert "SIL OPEN FONT LICENSE" in licence.read_text(encoding="utf-8").upper()
    assert sum(face.path.stat().st_size for face in FACES.faces) < 15_000_000


def test_an_unknown_family_names_those_there_are() -> None:
    with pytest.raises(UsageError, match="Docgen Sans"):
        fonts.coverage("Comic Sans")


def test_the_fingerprint_follows_the_files(narrow_faces: FaceSet) -> None:
    assert re.fullmatch("[0-9a-f]{64}", fonts.fingerprint())
    assert narrow_faces.fingerprint() != fonts.fingerprint()


def test_a_changed_font_file_is_not_used(narrow_faces: FaceSet, tmp_path: Path) -> None:
    original = narrow_faces.faces[0].path.parent
    for name in ("faces.tsv", "Narrow-Regular.ttf"):
        (tmp_path / name).write_bytes((original / name).read_bytes())
    with (tmp_path / "Narrow-Regular.ttf").open("ab") as file:
        file.write(b"\0")
    with pytest.raises(UsageError, match="install docgen again"):
        FaceSet.load(tmp_path).css(["Narrow"])
