"""General sentences of the page "Watch heads learn", on random cases.

What the page says of all twelve trainings is held in ``tests/experiments``.
"""

import re

import pytest
import torch
from torch.nn import functional as F

from coding_attention.figures import circuit
from coding_attention.models import heads, induction, stored
from coding_attention.models.repeats import repeats
from coding_attention.models.tiny_gpt import GPTConfig, TinyGPT
from tests.book.pages import pages
from theme.printed_values import text_of


def seeded(seed):
    return torch.Generator().manual_seed(seed)


# ---- layer norm ----


@pytest.mark.parametrize("width", [2, 4, 32])
@pytest.mark.parametrize("seed", range(3))
def test_layer_norm_leaves_nothing_of_size_and_shift(width, seed):
    x = torch.randn(5, width, generator=seeded(seed))
    norm = torch.nn.LayerNorm(width, eps=1e-12)
    for factor, shift in ((10, 0), (0.1, 3), (7, -5)):
        torch.testing.assert_close(
            norm(factor * x + shift), norm(x), atol=1e-3, rtol=1e-3
        )
    assert not torch.allclose(norm(-x), norm(x))  # a sign is no size


@pytest.mark.parametrize("width", [2, 4, 32])
def test_layer_norm_gives_each_row_mean_0_and_deviation_1(width):
    x = 5 + 9 * torch.randn(7, width, generator=seeded(width), dtype=torch.float64)
    normed = torch.nn.LayerNorm(width, eps=0, dtype=torch.float64)(x)
    assert normed.mean(dim=-1).abs().max() < 1e-9
    deviation = normed.var(dim=-1, correction=0).sqrt()
    torch.testing.assert_close(deviation, torch.ones(7, dtype=torch.float64))


def test_layer_norm_reads_no_other_token():
    x = torch.randn(6, 8, generator=seeded(0))
    norm = torch.nn.LayerNorm(8)
    for i in range(6):
        torch.testing.assert_close(norm(x)[i], norm(x[i]))


def test_a_row_of_equal_numbers_does_not_divide_by_zero():
    x = torch.full((2, 8), 3.0)
    assert torch.nn.LayerNorm(8)(x).abs().max() == 0
    assert torch.nn.LayerNorm(8, eps=0)(x).isnan().all()


# ---- the task ----

PIECES = [(40, 32, 6, 20), (12, 9, 2, 4), (30, 10, 3, 10)]


@pytest.mark.parametrize("sizes", PIECES)
def test_from_the_repetition_on_the_next_token_is_known(sizes):
    tokens, periods = repeats(50, *sizes, seeded(1))
    for line, period in zip(tokens.tolist(), periods.tolist(), strict=True):
        assert len(set(line[:period])) == min(period, len(line))  # none comes twice
        for i in range(period, len(line) - 1):
            earlier = line[:i].index(line[i])
            assert line[i + 1] == line[earlier + 1]
            assert line[i + 1] != line[i]


@pytest.mark.parametrize("sizes", PIECES)
def test_guessing_loss_is_the_cross_entropy_of_a_guess_among_the_piece(sizes):
    length, vocab_size = sizes[:2]
    tokens, periods = repeats(30, *sizes, seeded(2))
    scores = torch.full((30, length, vocab_size), -torch.inf)
    for line, period, row in zip(tokens, periods, scores, strict=True):
        row[:, line[:period]] = 0.0
    losses = F.cross_entropy(
        scores[:, :-1].flatten(0, 1), tokens[:, 1:].flatten(), reduction="none"
    ).view(30, -1)
    known = torch.arange(1, length) > periods.unsqueeze(1)
    assert induction.guessing_loss(tokens, periods, periods) == pytest.approx(
        losses[known].mean().item()
    )
    everything = torch.full_like(periods, vocab_size)
    assert induction.guessing_loss(tokens, periods, everything) == pytest.approx(
        torch.tensor(vocab_size).log().item()
    )


# ---- why two blocks ----


@pytest.mark.parametrize("seed", range(4))
@torch.no_grad()
def test_a_key_of_block_one_knows_its_own_token_only_and_one_of_block_two_more(seed):
    torch.manual_seed(seed)
    model = TinyGPT(GPTConfig(20, 10, 8, num_heads=2, num_blocks=2)).eval()
    keys = []
    for block in model.blocks:
        block.attention.W_key.register_forward_hook(
            lambda _, args, out: keys.append(out)
        )
    tokens = torch.randint(20, (1, 10))
    other = tokens.clone()
    other[0, 4] = (other[0, 4] + 1) % 20  # the token before position 5
    model(tokens), model(other)
    first, second, first_changed, second_changed = keys
    assert torch.equal(first[0, 5], first_changed[0, 5])
    assert not torch.equal(second[0, 5], second_changed[0, 5])


@pytest.mark.parametrize("seed", range(3))
@torch.no_grad()
def test_scores_lie_between_0_and_1(seed):
    torch.manual_seed(seed)
    model = induction.build(induction.Config()).eval()
    tokens, _ = induction.draw(induction.Config(), 8, seeded(seed))
    weights = heads.attention_weights(model, tokens)
    for score in (heads.previous_token_score, heads.induction_score, heads.sink_score):
        found = score(weights, tokens)
        assert found.shape == (2, 2)
        assert 0 <= found.min() <= found.max() <= 1


@torch.no_grad()
def test_the_model_continues_any_six_tokens_that_it_has_seen_once():
    """And the first time around, the control, it can't."""
    model = induction.build(induction.Config()).eval()
    model.load_state_dict(stored.load_weights("induction"))
    draws = (torch.randperm(32, generator=seeded(i))[:6] for i in range(200))
    pieces = torch.stack([*draws])
    guesses = model(torch.cat((pieces, pieces), dim=1)).argmax(dim=-1)
    assert (guesses[:, 6:11] == pieces[:, 1:]).double().mean() > 0.95
    assert (guesses[:, :5] == pieces[:, 1:]).double().mean() < 0.15


# ---- what captions say of the heads ----

BLOCKS = ("one", "two", "three")


def cells():
    (page,) = [p for p in pages() if p.name == "09_watch_heads_learn"]
    return page.code_cells


def captions():
    """All that the figures of the page are said to show, as one text."""
    told = [text_of(cell) for cell in cells()]
    return " ".join(" ".join(told).split())


def blocks_of_the_heads():
    """The number of the block where a stored run's head of each kind is, in words."""
    end = stored.load_results("induction")["runs"][0]["shown"][-1]
    best = {kind: [max(block) for block in end[kind]] for kind in
            ("previous", "induction")}  # fmt: skip
    assert all(max(scores) > 2 * min(scores) for scores in best.values())
    return {kind: BLOCKS[scores.index(max(scores))] for kind, scores in best.items()}


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("previous", r"head in block (\w+) tells each token"),
        ("induction", r"head in block (\w+) looks for"),
        ("previous", r"Block (\w+): arrows from “"),
        ("induction", r"Block (\w+): an arrow from “"),
        ("previous", r"best previous-token score in block (\w+)"),
        ("induction", r"best induction score in block (\w+)"),
        ("previous", r"of block (\w+) is taken out"),
        ("induction", r"out of what block (\w+) reads"),
    ],
)
def test_captions_name_the_block_where_the_head_is(kind, said):
    assert re.findall(said, captions()) == [blocks_of_the_heads()[kind]]


def test_the_drawn_circuit_names_the_block_where_the_head_is():
    drawn = [text.get_text() for text in circuit(["a", "b", "c"]).texts]
    told = dict(re.findall(r"block (\w+):\n(\w+)", "\n".join(drawn)))
    assert told == {block: kind for kind, block in blocks_of_the_heads().items()}


def test_captions_say_what_the_heads_look_for():
    """The token before comes before; the token after the last same word comes after."""
    tokens = torch.tensor([[5, 3, 7, 5]])
    there = {"before": -1, "after": 1}
    before, after = (
        re.search(said, captions())[1]
        for said in (r"what came (\w+) it", r"came (\w+) the same word")
    )
    weights = torch.zeros(1, 1, 4, 4)
    weights[0, 0, range(1, 4), torch.arange(1, 4) + there[before]] = 1
    assert heads.previous_token_score(weights, tokens) == 1
    weights = torch.zeros(1, 1, 4, 4)
    weights[0, 0, 3, 0 + there[after]] = 1
    assert heads.induction_score(weights, tokens) == 1


def test_the_caption_of_the_losses_says_on_which_side_of_half_they_end():
    config, tester = induction.Config(), seeded(induction.Config().test_seed)
    tokens, periods = induction.draw(config, config.test_count, tester)
    half = induction.guessing_loss(tokens, periods, periods) / 2
    runs = stored.load_results("induction")["runs"]
    ends = [r["loss"][-1] for r in runs if r["blocks"] == 2]
    ended = {"below": sum(end < half for end in ends),
             "above": sum(end > half for end in ends)}  # fmt: skip
    count, side = re.search(r"(\d+) of \d+ runs drop (\w+) half", captions()).groups()
    assert int(count) == ended[side] != ended["below"] - ended["above"]


@pytest.mark.parametrize(("said", "blocks"), [("two blocks", 2), ("one block", 1)])
def test_the_caption_of_the_losses_says_how_many_blocks_they_are_of(said, blocks):
    config, tester = induction.Config(), seeded(induction.Config().test_seed)
    tokens, periods = induction.draw(config, config.test_count, tester)
    half = induction.guessing_loss(tokens, periods, periods) / 2
    losses = [r["loss"] for r in stored.load_results("induction")["runs"]
              if r["blocks"] == blocks]  # fmt: skip
    dropped = sum(min(loss) < half for loss in losses)
    (told,) = re.findall(rf"With {said}, (\d+) of (\d+)", captions())
    assert told == (str(dropped), str(len(losses)))
    (page,) = [p for p in pages() if p.name == "09_watch_heads_learn"]
    (cell,) = [c for c in page.source.cells if c.metadata.get("name") == "figure-loss"]
    number = said.split()[0]  # the name of the list of these runs, too
    assert re.search(rf"With {said}, {{[^}}]+}} of {{len\({number}\)}}", cell.source)


def test_the_dashed_line_is_the_most_that_a_score_can_be():
    (most,) = re.search(r"Dashed: the (\w+) possible", captions()).groups()
    tokens = torch.tensor([[5, 3, 5, 3]])
    looks = torch.full((1, 1, 4, 4), 0.0)
    looks[0, 0, [0, 1, 2, 3], [0, 0, 1, 2]] = 1  # all weight on the token before
    found = [heads.induction_score(looks.roll(n, -1), tokens).item() for n in range(4)]
    assert {"most": max(found), "least": min(found)}[most] == 1


def test_the_caption_of_the_wires_names_what_is_cut():
    """Each loss that the caption tells stands beside the part it was cut out of."""
    (cell,) = [c for c in cells() if c.metadata.name == "figure-wires"]
    told = "".join(re.findall(r'f"(.*)"', cell.source))
    (key,) = re.findall(r"cuts\['(\w+) only'\][^}]*} out of the (\w+)", told)
    pair = re.findall(r"'(\w+) only'", told.split("everything")[1])
    words = re.search(r"out of (\w+) and (\w+),", told.split("everything")[1]).groups()
    plural = {"key": "keys", "query": "queries", "value": "values"}
    assert plural[key[0]] == key[1]
    assert tuple(plural[p] for p in pair) == words
