"""Cut the site's fonts to the characters in use: theme/static/fonts.

Run it by hand when a page needs a new character; the result is committed. It needs
fonttools with brotli, and a folder that holds, unpacked,

    npm pack @fontsource-variable/source-serif-4@5.3.1    text
    npm pack @fontsource/iosevka@5.3.0                    code, half as wide as high
    apt-get download fonts-stix                           formulas

    python tools/fonts.py FOLDER

All three are under the SIL Open Font License 1.1; the names that it reserves are left
to the originals, and the cut files have names of their own (NOTICE).
"""

import json
import sys
from pathlib import Path
from string import ascii_letters

from fontTools import subset
from fontTools.ttLib import TTFont
from fontTools.varLib.instancer import instantiateVariableFont

ROOT = Path(__file__).resolve().parents[1]
STATIC = ROOT / "theme" / "static" / "fonts"

# What each face holds, for the test that every page is set in it.
HELD = ROOT / "tests" / "theme" / "letters.json"
# ASCII, and what the pages use or are likely to: all pages carry each further one.
LETTERS = (
    "".join(map(chr, range(0x20, 0x7F)))
    + "\u00a0§©°±·×ÄÖÜßäöüáçèéëíñóŁ‑–—‘’“”…′→←≈≤≥−√"
)
GREEK = "αβγδεθλμνπρστφψωΔΣΦΩ"
CODE = LETTERS + GREEK + "ᵀ⁻₀₁₂│─┌┐└┘├┤┬┴┼█▁▂▃▄▅▆▇✓✗∞≠"
MATHS = LETTERS + GREEK + "∑∏∂∇∞≠∈∼∝⋯⊤⊙‖⟨⟩⇒ℝ⁡⁢⏟"


def italic(letter):
    """Give a letter as formulas show it where it stands alone: h as ℎ, α as 𝛼."""
    if letter == "h":
        return "ℎ"
    for first, start in (("A", 0x1D434), ("a", 0x1D44E), ("α", 0x1D6FC)):
        place = ord(letter) - ord(first)
        if 0 <= place < (25 if first == "α" else 26):
            return chr(start + place)
    return letter


# As browsers set a letter that stands alone: in the italics of mathematics.
ITALICS = "".join(map(italic, ascii_letters + GREEK[: GREEK.index("Δ")]))
FAMILY = 1  # as the name table counts: of its names for a font, the only one kept
FONTS = {  # name -> (where the original lies, its characters, range of weights)
    "text": ("**/source-serif-4-latin-wght-normal.woff2", LETTERS, (400, 700)),
    "text-italic": ("**/source-serif-4-latin-wght-italic.woff2", LETTERS, (400, 400)),
    "code": ("**/iosevka-latin-400-normal.woff2", CODE, None),
    "maths": ("**/STIXMath-Regular.otf", MATHS + ITALICS, None),
}


def cut(font, letters, weights):
    """Leave the letters, and of the layout what sets letters and formulas."""
    if weights:
        instantiateVariableFont(font, {"wght": weights}, inplace=True)
    options = subset.Options(
        layout_features=["kern", "mark", "mkmk", "ssty", "liga", "ccmp", "locl"],
        name_IDs=[0, FAMILY, 2, 13, 14],  # copyright, style, license and its address
        hinting=False,
        desubroutinize=True,
    )
    if "MATH" not in font:
        options.layout_features = ["kern", "mark", "mkmk"]
    cutter = subset.Subsetter(options)
    cutter.populate(text=letters)
    cutter.subset(font)


def rename(font, name):
    """Give the cut font a name that no license reserves."""
    for record in list(font["name"].names):
        if record.nameID == FAMILY:
            font["name"].setName(name, FAMILY, *_kind(record))
    if "CFF " in font:
        font["CFF "].cff.fontNames = [name]


def _kind(record):
    return record.platformID, record.platEncID, record.langID


def main(folder):
    STATIC.mkdir(parents=True, exist_ok=True)
    held = {}
    for name, (place, letters, weights) in FONTS.items():
        font = TTFont(next(Path(folder).glob(place)))
        cut(font, letters, weights)
        rename(font, f"attention-{name}")
        font.flavor = "woff2"
        held[name] = "".join(map(chr, sorted(font.getBestCmap())))
        file = STATIC / f"{name}.woff2"
        font.save(file)
        HELD.write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")
        print(f"{file.stat().st_size:7d} {file}")


if __name__ == "__main__":
    main(*sys.argv[1:])
