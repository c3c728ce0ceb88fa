"""Where the drawings of a figure stand in its picture."""

from coding_attention.figures.picture import _places


def test_drawings_fill_rows_and_keep_one_distance_both_ways():
    places, height = _places([(600, 100), (600, 140), (900, 50)])
    # 1,376 pixels have room for two of them, 48 apart.
    assert places == [(0, 0), (648, 0), (0, 188)]
    assert height == 238
