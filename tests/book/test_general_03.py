"""What the pages on trainable self-attention say in general, over sizes and seeds."""

import contextlib
import io
import itertools

import pytest
import torch
from torch import nn

from attention import (
    CausalAttention,
    SelfAttention_v1,
    SelfAttention_v2,
    simple_self_attention,
)
from tests.book.run_cells import run_cells

SIZES = [(2, 3, 2), (5, 4, 4), (6, 3, 8), (9, 16, 5)]  # (t, d_in, d_out)
SEEDS = range(3)
cases = pytest.mark.parametrize(
    ("t", "d_in", "d_out", "seed"), [(*s, seed) for s in SIZES for seed in SEEDS]
)


def page_cells(page, *names):
    with contextlib.redirect_stdout(io.StringIO()):
        return run_cells(page, *names)


def drawn(t, d_in, d_out, seed, kind=SelfAttention_v2):
    torch.manual_seed(seed)
    return torch.randn(t, d_in, dtype=torch.float64), kind(d_in, d_out).double()


def train(layer, x, target):
    learning = [p for p in layer.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(learning, lr=0.05)
    for _ in range(201):
        loss = (layer(x) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def reading_words(d_in, t, seed):
    """A layer whose values are the words themselves, and stay so."""
    torch.manual_seed(seed)
    layer = SelfAttention_v2(d_in, t)
    nn.init.eye_(layer.W_value.weight).requires_grad_(False)
    return layer


@cases
@pytest.mark.parametrize("batched", [False, True])
def test_both_classes_are_one_function(t, d_in, d_out, seed, batched):
    x, v2 = drawn(t, d_in, d_out, seed)
    v1 = SelfAttention_v1(d_in, d_out).double()
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            getattr(v1, name).copy_(getattr(v2, name).weight.T)
    batch = torch.stack([x, 2 * x]) if batched else x
    torch.testing.assert_close(v1(batch), v2(batch))
    with torch.no_grad():
        # As long as the second has no biases: the first has no place for them.
        v2.W_value.bias = nn.Parameter(torch.ones(d_out).double())
    torch.testing.assert_close(v1(batch) + 1, v2(batch))


@pytest.mark.parametrize("kind", [SelfAttention_v1, SelfAttention_v2])
@cases
def test_shuffled_tokens_give_shuffled_rows_and_nothing_else(
    t, d_in, d_out, seed, kind
):
    x, layer = drawn(t, d_in, d_out, seed, kind)
    order = torch.randperm(t)
    torch.testing.assert_close(layer(x[order]), layer(x)[order])


@cases
def test_with_a_mask_or_with_positions_order_matters(t, d_in, d_out, seed):
    """The control: only without both are the same rows shuffled."""
    x, layer = drawn(t, d_in, d_out, seed)
    order = torch.arange(t).roll(1)
    masked = CausalAttention(d_in, d_out, t, 0.0).double()
    batch = x.unsqueeze(0)
    assert not torch.allclose(masked(batch[:, order]), masked(batch)[:, order])
    places = torch.randn(t, d_in).double()
    assert not torch.allclose(layer(x[order] + places), layer(x + places)[order])


@pytest.mark.parametrize("t", [3, 4, 6, 9, 12])
@pytest.mark.parametrize("seed", SEEDS)
def test_queries_and_keys_learn_to_look_at_the_token_before(t, seed):
    words, layer = torch.eye(t), reading_words(t, t, seed)
    first = layer(words).detach()
    assert (first - 1 / t).abs().max() < 0.08  # all alike
    train(layer, words, words.roll(1, dims=0))
    on_the_one_before = layer(words).detach().roll(1, dims=1).diagonal()
    # All seeds reach 0.99; a layer that learned nothing stays at a third or below.
    assert on_the_one_before.min() > 0.65


@pytest.mark.parametrize("frozen", ["W_query", "W_key"])
@pytest.mark.parametrize("seed", range(2))
def test_queries_or_keys_alone_learn_to_look_at_the_token_before(frozen, seed):
    """Values are the words throughout: they make no difference here."""
    words, layer = torch.eye(6), reading_words(6, 6, seed)
    nn.init.eye_(getattr(layer, frozen).weight).requires_grad_(False)
    train(layer, words, words.roll(1, dims=0))
    assert layer(words).detach().roll(1, dims=1).diagonal().min() > 0.65  # 0.90


@pytest.mark.parametrize("t", [2, 3, 6, 12])
def test_simple_attention_looks_most_at_itself_and_has_nothing_to_train(t):
    weights = simple_self_attention(torch.eye(t))
    assert (weights.argmax(dim=1) == torch.arange(t)).all()
    others = weights[~torch.eye(t, dtype=torch.bool)]
    torch.testing.assert_close(others, others[:1].expand_as(others))
    assert not weights.requires_grad


@pytest.mark.parametrize("seed", SEEDS)
def test_without_places_a_shuffled_sentence_cannot_be_learned(seed):
    t = 6
    orders = torch.stack([torch.randperm(t) for _ in range(100)])
    layer, words = reading_words(t, t, seed), torch.eye(t)
    train(layer, words[orders], words[orders.roll(1, dims=1)])
    z = layer(words[orders]).detach()
    right = z.argmax(dim=-1) == orders.roll(1, dims=1)
    assert right.float().mean() < 0.55  # 0.27 at most; with places, all are right


@pytest.mark.parametrize("seed", SEEDS)
def test_with_places_the_rule_is_learned_for_every_order(seed):
    words, places = torch.eye(12).split(6)
    layer = reading_words(12, 6, seed)
    orders = torch.stack([torch.randperm(6) for _ in range(100)])
    train(layer, words[orders] + places, torch.eye(6)[orders.roll(1, dims=1)])
    every = torch.tensor(list(itertools.permutations(range(6))))
    z = layer(words[every] + places).detach()
    before = every.roll(1, dims=1).unsqueeze(-1)
    assert z.gather(-1, before).min() > 0.65  # 0.97 or more; untrained, a sixth


@pytest.mark.parametrize("seed", range(2))
def test_from_two_orders_no_rule_is_learned(seed):
    """The control: trying every order can tell a rule from two learned sentences."""
    torch.manual_seed(seed)
    words, places = torch.eye(12).split(6)
    layer = SelfAttention_v2(12, 6)  # the page's, with values that learn
    orders = torch.stack([torch.randperm(6) for _ in range(2)])
    train(layer, words[orders] + places, torch.eye(6)[orders.roll(1, dims=1)])
    every = torch.tensor(list(itertools.permutations(range(6))))
    z = layer(words[every] + places).detach()
    right = z.argmax(dim=-1) == every.roll(1, dims=1)
    assert right.float().mean() < 0.5  # a guess gets a sixth


@pytest.mark.parametrize("seed", SEEDS)
def test_scores_grow_with_the_width_of_tokens_by_rand_and_not_by_linear(seed):
    torch.manual_seed(seed)
    for draw, least, most in ((torch.randn, 8, 32), (torch.rand, 40, 120)):
        by_rand, by_linear = [], []
        for d_in in (64, 1024):
            x = draw(300, d_in)
            q, k = x @ torch.rand(2, d_in, 64)
            by_rand.append((q @ k.T).std())
            q, k = (nn.Linear(d_in, 64, bias=False)(x) for _ in range(2))
            by_linear.append((q @ k.T).detach().std())
        # Sixteen times the width: in step with it, or faster if all is positive.
        assert least < by_rand[1] / by_rand[0] < most
        assert 0.5 < by_linear[1] / by_linear[0] < 2


@cases
def test_linear_keeps_one_row_for_each_output_and_draws_within_its_bound(
    t, d_in, d_out, seed
):
    x, layer = drawn(t, d_in, d_out, seed)
    weight = layer.W_query.weight
    assert weight.shape == (d_out, d_in)
    for row, output in zip(weight, layer.W_query(x).T, strict=True):
        torch.testing.assert_close(x @ row, output)
    assert (weight.abs() <= d_in**-0.5).all()


@cases
def test_one_matrix_for_queries_and_keys_makes_scores_symmetric(t, d_in, d_out, seed):
    x, layer = drawn(t, d_in, d_out, seed)
    queries, keys = layer.W_query(x), layer.W_key(x)
    shared, separate = queries @ queries.T, queries @ keys.T
    torch.testing.assert_close(shared, shared.T)
    assert (shared.diagonal() >= 0).all()
    assert not torch.allclose(separate, separate.T)


@pytest.mark.parametrize("t", [3, 4, 6, 9])
def test_symmetric_scores_cannot_look_back_around_the_circle(t):
    """Not all tokens at once can score highest with the one before."""
    torch.manual_seed(t)
    before = torch.arange(t).roll(1)
    for scale in (0.1, 1.0, 10.0):
        queries = scale * torch.randn(2000, t, 3)
        # As good a chance as there is: neighbors score high with each other.
        near = torch.eye(t)[before] + torch.eye(t)[before].T
        shared = queries @ queries.transpose(-2, -1) + 5 * scale**2 * near
        assert not (shared.argmax(dim=-1) == before).all(dim=-1).any()
        assert (shared.argmax(dim=-1) == before).any(dim=0).all()


@pytest.fixture(scope="module")
def least():
    """The page's function, once it has printed five seeds of t = 6."""
    page = page_cells("03_questions", "setup", "one-matrix-looks-back")
    return page["weight_on_the_one_before"]


@pytest.mark.parametrize(("t", "seed"), itertools.product((3, 9), range(3)))
def test_one_matrix_looks_back_along_a_line_and_not_around_a_circle(t, seed, least):
    """The circle is what it cannot do: without it, it learns, mask or no mask."""
    assert least(seed, 1, True, t=t) > 0.8  # 0.98 or more
    assert least(seed, 1, False, t=t) > 0.8
    assert least(seed, 0, False, t=t) < 0.5  # a third at most


@pytest.mark.parametrize(("first", "causal"), [(0, False), (1, False), (1, True)])
@pytest.mark.parametrize("seed", range(2))
def test_two_matrices_look_back_around_the_circle_and_along_the_line(
    first, causal, seed
):
    torch.manual_seed(seed)
    words, queries, keys = torch.eye(6), nn.Linear(6, 6), nn.Linear(6, 6)
    hidden = torch.ones(6, 6).triu(diagonal=1).bool() & causal
    target = words.roll(1, dims=0)[first:]
    both = [*queries.parameters(), *keys.parameters()]
    optimizer = torch.optim.Adam(both, lr=0.05)
    for _ in range(300):
        scores = (queries(words) @ keys(words).T).masked_fill(hidden, -torch.inf)
        weights = scores.softmax(dim=-1)[first:]
        loss = (weights - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert weights[target.bool()].min() > 0.9  # 0.98; one matrix, a third at most


@cases
def test_one_wide_matrix_gives_the_same_scores_at_rank_d_k(t, d_in, d_out, seed):
    x, layer = drawn(t, d_in, d_out, seed)
    W_query, W_key = layer.W_query.weight.T, layer.W_key.weight.T  # (d_in, d_k)
    both = W_key @ W_query.T  # (d_in, d_in)
    scores = (x @ W_query) @ (x @ W_key).T
    torch.testing.assert_close(x @ (x @ both).T, scores)
    assert torch.linalg.matrix_rank(both) <= d_out


@cases
def test_averages_stay_in_the_range_of_the_inputs_and_values_leave_it(
    t, d_in, d_out, seed
):
    x, layer = drawn(t, d_in, d_out, seed)
    x = x.abs()  # positive inputs, such as those of the running example
    weights = torch.softmax(3 * torch.randn(200, t, dtype=torch.float64), dim=-1)
    averages = weights @ x
    assert (averages >= x.amin(dim=0) - 1e-9).all()
    assert (averages <= x.amax(dim=0) + 1e-9).all()
    assert (weights @ (x @ -torch.ones(d_in, 1).double()) < 0).all()
    value = layer.W_value.weight.T
    torch.testing.assert_close(weights @ (x @ value), (weights @ x) @ value)


@pytest.mark.parametrize("d_in", [16, 256])
@pytest.mark.parametrize("d_k", [4, 64, 256])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_variance_of_a_score_is_the_width_of_a_key(d_in, d_k, seed):
    """Whatever the width of the token, if queries and keys have variance one."""
    torch.manual_seed(seed)
    x, y = torch.randn(2, 600, d_in)
    W_query, W_key = torch.randn(2, d_in, d_k) / d_in**0.5
    scores = (x @ W_query) @ (y @ W_key).T
    assert scores.var() / d_k == pytest.approx(1, abs=0.35)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("keys", [4, 6, 16])
def test_undivided_wide_keys_leave_most_queries_without_a_gradient(seed, keys):
    """And yet the mean gradient is larger than with the division."""
    d_k = 1024
    found = {}
    for divisor in (1, d_k**0.5):
        torch.manual_seed(seed)
        query = torch.randn(500, 1, d_k, requires_grad=True)
        scores = query @ torch.randn(500, d_k, keys) / divisor
        scores.softmax(dim=-1).amax(dim=-1).sum().backward()
        found[divisor] = query.grad.norm(dim=-1)
    plain, divided = found[1], found[d_k**0.5]
    assert (plain < 0.01).float().mean() > 0.5
    assert (divided < 0.01).float().mean() == 0
    assert plain.mean() > divided.mean()


def look_back(loss, divisor, rate):
    """How many of the 30 tokens of five trainings look at the right one."""
    page = page_cells("03_questions", "setup", "two-trainings")
    trained = (
        page["train_to_look_back"](seed, divisor, page[loss], rate) for seed in range(5)
    )
    return sum(right[-1] for _, right in trained)


OUTPUT = [("squared_error_of_output", rate) for rate in (1.0, 10.0, 100.0)] + [
    ("cross_entropy_of_output", rate) for rate in (0.1, 1.0, 10.0)
]


@pytest.mark.parametrize(("loss", "rate"), OUTPUT)
def test_a_loss_of_the_output_needs_the_division(loss, rate):
    """At its rate on the page, at a tenth and at ten times of it."""
    assert look_back(loss, 1024**0.5, rate) > 20  # 27 or more
    assert look_back(loss, 1, rate) < 15  # 8 at most; 6 look right to begin with


@pytest.mark.parametrize("rate", [0.01, 0.1, 1.0])
def test_a_loss_of_the_scores_does_not_need_the_division(rate):
    """The control: it is softmax between scores and loss that saturates."""
    assert look_back("cross_entropy_of_scores", 1, rate) > 25  # all 30
    divided = look_back("cross_entropy_of_scores", 1024**0.5, rate)
    assert divided < 21 if rate == 0.01 else divided > 25  # 14 or so, else all 30


@pytest.mark.parametrize("loss", ["squared_error_of_output", "cross_entropy_of_output"])
def test_adam_needs_the_division_as_well(loss):
    """It evens out the size of gradients, but not that of a softmax without a slope."""
    page = page_cells("03_questions", "setup", "two-trainings")
    right = dict.fromkeys((1, 1024**0.5), 0)
    for divisor, seed in itertools.product(right, range(2)):
        torch.manual_seed(seed)
        both = torch.randn(2, 6, 1024, dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.Adam([both], lr=0.01)
        for _ in range(300):
            scores = both[0] @ both[1].T / divisor
            optimizer.zero_grad()
            page[loss](scores).backward()
            optimizer.step()
        right[divisor] += (scores.argmax(dim=-1) == page["before"]).sum().item()
    assert right[1] < 8 < 10 < right[1024**0.5]  # 5 or 6, and 12 of 12


def test_a_small_start_does_for_softmax_what_the_division_does():
    """The control: it is the size of the first scores that matters."""
    page = page_cells("03_questions", "setup", "two-trainings")
    right = 0
    for seed in range(5):
        torch.manual_seed(seed)
        both = torch.randn(2, 6, 1024, dtype=torch.float64) / 1024**0.25
        both.requires_grad_()
        for _ in range(300):
            scores = both[0] @ both[1].T
            loss = page["squared_error_of_output"](scores)
            (gradient,) = torch.autograd.grad(loss, both)
            both.data -= gradient
        right += (scores.argmax(dim=-1) == page["before"]).sum().item()
    assert right > 27  # all 30; from a start without the root, 8


def test_cross_entropy_pushes_each_score_by_its_weight_minus_the_target():
    scores = 30 * torch.randn(6, 6, dtype=torch.float64)
    scores.requires_grad_()
    before = torch.arange(6).roll(1)
    nn.functional.cross_entropy(scores, before, reduction="sum").backward()
    weights = scores.detach().softmax(dim=-1)
    torch.testing.assert_close(scores.grad, weights - torch.eye(6)[before])
