"""Draw theme/static/social-card.png from its SVG, which link previews cannot show."""

from pathlib import Path

from tools.measure.visit import browser

STATIC = Path(__file__).resolve().parents[1] / "theme" / "static"
SIZE = {"width": 1200, "height": 630}


def main():
    svg = (STATIC / "social-card.svg").read_text(encoding="utf-8")
    with browser() as instance:
        page = instance.new_page(viewport=SIZE)
        page.set_content(f"<body style='margin:0'>{svg}</body>")
        page.screenshot(path=STATIC / "social-card.png")
    print(f"Wrote {STATIC / 'social-card.png'}")


if __name__ == "__main__":
    main()
