"""Words about a drawing follow the drawing: turn the numbers, and the words turn."""

import pytest
import torch

from coding_attention import figures
from coding_attention.figures import words

TOKENS = ["a", "b", "c"]


def alt(ax):
    return ax.figure.words[1]


@pytest.mark.parametrize(
    ("weights", "where"),
    [
        (torch.eye(3), "in each row the largest is on the diagonal"),
        (torch.tensor([[0.0, 1, 0], [0, 0, 1], [1, 1, 1]]), "is right of the diagonal"),
        (torch.eye(3).roll(1, 0), "is left of the diagonal, and in the first row in c"),
        (torch.eye(3).flip(1), "the largest of each row: a in c, b in b, c in a"),
        (torch.tensor([[0.0, 1, 0]] * 3), "the largest of a row is in b"),
        (torch.full((3, 3), 1 / 3), "each row has one value throughout"),
    ],
)
def test_the_largest_is_where_the_drawing_has_it(weights, where):
    assert where in alt(figures.pattern(weights, TOKENS, TOKENS))
    assert where in alt(figures.matrix(weights, TOKENS, TOKENS, decimals=2))


def test_no_number_is_below_the_one_that_is_told():
    assert words.at_least(torch.tensor([0.984, 0.5, 0.7])) == "at least 0.50"


def test_a_cell_with_more_weight_is_darker_as_its_text_says():
    ax = figures.pattern(torch.tensor([[0.9, 0.1]]), ["q"], ["a", "b"])
    more, less = (sum(cell.get_facecolor()[:3]) for cell in ax.patches)
    assert more < less
    assert "darker for more weight" in alt(ax)


def test_framed_cells_are_counted_where_they_are_the_largest():
    ax = figures.pattern(torch.eye(3), TOKENS, TOKENS, marked=[(0, 0), (1, 0)])
    assert "1 of 2 framed cells are the largest of their row" in alt(ax)


def test_an_alternative_names_what_is_joined_and_which_line_is_thicker():
    weights = [0.25, 0.75]
    ax = figures.look_back(["a", "b"], ["c", "d"], 1, weights)
    thin, thick = (line.get_linewidth() for line in ax.lines)
    assert thin < thick
    assert "and two lines join the state that writes d" in alt(ax)
    assert alt(ax).endswith("The thicker a line, the more it takes: a 0.25, b 0.75.")
    ax = figures.alignment(["a", "b"], ["c", "d"], [(0, 1), (1, 0)], [(1, 0)])
    assert "lines: a and d, b and c. Standing out: b and c." in alt(ax)
    assert "The state of b goes into" in alt(figures.bottleneck(["a", "b"], ["c"]))


@pytest.mark.parametrize(("end", "way"), [(0.2, "falls"), (1.5, "rises"), (1, "stays")])
def test_a_line_goes_the_way_it_is_drawn(end, way):
    ax = figures.curves([0, 10], {"loss": [[1, end]]}, "step", "loss", {"best": 0.3})
    (line,) = (one for one in ax.lines if one.get_label() == "loss")
    first, last = line.get_ydata()
    assert way == ("falls" if last < first else "rises" if last > first else "stays")
    assert f"loss {way} " in alt(ax)
    assert "a dashed line for best at 0.30" in alt(ax)


def test_ones_of_a_mask_are_told_by_row_and_column():
    told = alt(figures.matrix(torch.ones(3, 3).triu(1), TOKENS, TOKENS, decimals=0))
    assert told.endswith("Ones: a from b to c; b in c; c in no column.")


def test_blank_cells_and_the_range_of_the_others_are_told():
    future = torch.ones(3, 3).triu(1).bool()
    values = torch.tensor([[1.0, 9, 9], [0.25, 0.75, 9], [0.5, 0.25, 0.25]])
    told = alt(figures.matrix(values, TOKENS, TOKENS, blank=future, decimals=2))
    assert "three rows and three columns, empty above the diagonal" in told
    assert told.endswith("numbers from 0.25 to 1.00.")


def test_bars_tell_every_number():
    told = alt(figures.bars({"x": torch.tensor([0.5, 0.25])}, ["a", "b"]))
    assert told == "Horizontal bars. x: a 0.5000, b 0.2500."
