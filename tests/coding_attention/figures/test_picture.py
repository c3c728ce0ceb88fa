"""Where the drawings of a figure stand in its picture, and how large they are."""

from matplotlib.figure import Figure

from coding_attention.figures.picture import _image, _places


def test_a_drawing_keeps_its_size_and_one_that_is_too_wide_fills_the_column():
    # 180 pixels an inch; the column has 1,376.
    assert _image(Figure(figsize=(2, 10))).size == (360, 1800)
    assert _image(Figure(figsize=(16, 4))).size == (1376, 344)


def test_drawings_fill_rows_and_keep_one_distance_both_ways():
    places, height = _places([(600, 100), (600, 140), (900, 50)])
    # 1,376 pixels have room for two of them, 48 apart.
    assert places == [(0, 0), (648, 0), (0, 188)]
    assert height == 238
