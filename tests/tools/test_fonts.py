"""What the cut fonts are called, and the letters that they hold."""

from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen

from tools import fonts


def test_no_reserved_name_is_left():
    builder = FontBuilder(unitsPerEm=1000)
    builder.setupGlyphOrder([".notdef", "A"])
    builder.setupCharacterMap({ord("A"): "A"})
    builder.setupGlyf({name: TTGlyphPen(None).glyph() for name in (".notdef", "A")})
    names = ("familyName", "uniqueFontIdentifier", "fullName", "psName",
             "typographicFamily", "copyright", "licenseDescription",
             "licenseInfoURL")  # fmt: skip
    builder.setupNameTable({name: f"Reserved {name}" for name in names})
    builder.setupHorizontalMetrics({".notdef": (500, 0), "A": (500, 0)})
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupOS2()
    builder.setupPost()
    font = builder.font
    fonts.cut(font, "A", None)
    fonts.rename(font, "attention-text")
    left = {record.nameID: str(record) for record in font["name"].names}
    # The license wants the copyright and itself to stay.
    assert left == {
        0: "Reserved copyright", 1: "attention-text",
        13: "Reserved licenseDescription", 14: "Reserved licenseInfoURL",
    }  # fmt: skip


def test_a_letter_of_a_formula_is_in_italics():
    told = {"A": "𝐴", "z": "𝑧", "h": "ℎ", "α": "𝛼", "ω": "𝜔", "Σ": "Σ", "5": "5"}
    assert {letter: fonts.italic(letter) for letter in told} == told
