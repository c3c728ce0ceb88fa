"""What the page on simple self-attention says in general holds for random inputs."""

import pytest
import torch

from attention import simple_self_attention
from attention.simple import softmax_naive
from coding_attention.labs import bank

SIZES = [(2, 1), (3, 2), (6, 3), (9, 16)]  # (t, d_in)
cases = pytest.mark.parametrize(
    ("t", "d_in", "seed"), [(*size, seed) for size in SIZES for seed in range(3)]
)


def tokens(t, d_in, seed, scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(t, d_in, generator=generator, dtype=torch.float64)


@cases
def test_a_dot_product_is_both_lengths_times_the_cosine(t, d_in, seed):
    one, other = tokens(t, d_in, seed), tokens(t, d_in, seed + 100)
    cosine = torch.nn.functional.cosine_similarity(one, other)
    product = one.norm(dim=1) * other.norm(dim=1) * cosine
    torch.testing.assert_close((one * other).sum(dim=1), product)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("d", [2, 3, 16])
def test_the_sign_of_a_dot_product_is_that_of_the_angle(d, seed):
    """Positive below a right angle, zero at it, negative beyond."""
    along, free = tokens(2, d, seed)
    across = free - (free @ along) / (along @ along) * along
    assert torch.dot(along, across).abs() < 1e-9
    assert torch.dot(along, across + along) > 0.1
    assert torch.dot(along, across - along) < -0.1


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0, 1000.0])
@cases
def test_softmax_makes_weights_of_any_scores(t, d_in, seed, scale):
    """Not negative, with the sum one, and in the order of the scores."""
    scores = tokens(t, d_in, seed, scale)
    weights = torch.softmax(scores, dim=-1)
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(t, dtype=torch.float64))
    by_score = weights.gather(-1, scores.argsort(dim=-1))
    assert (by_score.diff(dim=-1) >= 0).all()


@cases
def test_softmax_does_not_change_when_all_scores_do(t, d_in, seed):
    scores = tokens(t, d_in, seed)
    shifted = torch.softmax(scores - scores.max(), dim=-1)
    torch.testing.assert_close(shifted, torch.softmax(scores, dim=-1))


@pytest.mark.parametrize("seed", range(5))
def test_the_naive_softmax_is_the_formula_until_it_overflows(seed):
    scores = tokens(6, 1, seed).squeeze(1).float()
    torch.testing.assert_close(softmax_naive(scores), torch.softmax(scores, dim=0))
    large = scores + 100 - scores.min()
    assert softmax_naive(large).isnan().all()
    torch.testing.assert_close(softmax_naive(large - large.max()), large.softmax(dim=0))


@pytest.mark.parametrize("seed", range(5))
def test_dividing_by_the_sum_makes_no_weights_of_scores_with_both_signs(seed):
    scores = tokens(6, 1, seed).squeeze(1)
    scores[:2] = torch.tensor([1.0, -1.0])  # both signs, whatever was drawn
    by_sum = scores / scores.sum()
    assert by_sum.min() < 0
    assert (torch.softmax(scores, dim=0) >= 0).all()


@cases
def test_a_context_vector_lies_among_the_inputs(t, d_in, seed):
    x = tokens(t, d_in, seed, scale=2.0)
    z = simple_self_attention(x)
    assert (z >= x.amin(dim=0) - 1e-9).all()
    assert (z <= x.amax(dim=0) + 1e-9).all()


@cases
def test_each_row_is_what_the_loop_gives_for_its_query(t, d_in, seed):
    x = tokens(t, d_in, seed)
    for i, query in enumerate(x):
        scores = torch.stack([torch.dot(x_j, query) for x_j in x])
        weights = scores.exp() / scores.exp().sum()
        z = sum(weight * x_j for weight, x_j in zip(weights, x, strict=True))
        torch.testing.assert_close(simple_self_attention(x)[i], z)


@cases
def test_softmax_along_the_last_axis_serves_one_sentence_and_a_batch(t, d_in, seed):
    batch = torch.stack([tokens(t, d_in, seed), tokens(t, d_in, seed + 100)])
    one_by_one = torch.stack([simple_self_attention(x) for x in batch])
    torch.testing.assert_close(simple_self_attention(batch), one_by_one)
    scores = batch @ batch.transpose(-2, -1)
    sums = {dim: torch.softmax(scores, dim=dim).sum(dim=-1) for dim in (1, -1)}
    torch.testing.assert_close(sums[-1], torch.ones_like(sums[-1]))
    assert not torch.allclose(sums[1], torch.ones_like(sums[1]))


@cases
def test_small_scores_leave_nearly_the_mean(t, d_in, seed):
    """The closer the scores, the closer the outputs to the plain mean."""
    distances = []
    for scale in (1.0, 0.1, 0.01):
        x = tokens(t, d_in, seed, scale)
        spread = x.std(dim=0).max()
        z = simple_self_attention(x)
        distances.append(float((z - x.mean(dim=0)).abs().max() / spread))
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 0.01


@pytest.mark.parametrize("others", range(1, 6))
def test_bank_turns_to_its_neighbors(others):
    """With one neighbor or many, and whatever the sentence holds of `the`."""
    for side in (0, 1):
        for fillers in range(3):
            neighbor = torch.zeros(2)
            neighbor[side] = 2.0
            x = torch.stack(
                [torch.ones(2), *[neighbor] * others, *[torch.zeros(2)] * fillers]
            )
            z = simple_self_attention(x)[0]
            assert z[side] > z[1 - side] + 0.5


def test_a_plain_mean_turns_bank_as_far_and_not_once_scores_differ():
    """What the landing page says of its lab."""

    def shares(lab):
        for sentence, (_, z) in zip(lab.sentences, lab.compute(), strict=True):
            x = torch.tensor([lab.vectors[word] for word in sentence.split()])
            mean = x.mean(dim=0)
            yield float(z[0] / sum(z)), float(mean[0] / mean.sum())

    for by_attention, by_mean in shares(bank.BankLab()):
        assert by_attention == pytest.approx(by_mean)
    # The control: a neighbor in each that scores higher, and the two part.
    vectors = bank.BankLab().vectors | {"river": [2.5, 0.0], "loan": [0.0, 2.5]}
    for by_attention, by_mean in shares(bank.BankLab(vectors=vectors)):
        assert abs(by_attention - by_mean) > 0.03


@pytest.mark.parametrize("seed", range(5))
def test_closeness_of_scores_is_what_keeps_outputs_near_the_mean(seed):
    """The same tokens, ten times as long: scores far apart, outputs far from it."""
    x = tokens(6, 3, seed)
    small, large = (
        (simple_self_attention(scale * x) / scale - x.mean(dim=0)).norm(dim=1).mean()
        for scale in (0.1, 10)
    )
    assert small < 0.1 < 0.5 < large


@cases
def test_no_token_prefers_one_that_points_away_to_itself(t, d_in, seed):
    x = tokens(t, d_in, seed)
    scores = x @ x.T
    weights = torch.softmax(scores, dim=-1)
    assert (weights <= weights.diagonal().unsqueeze(1))[scores <= 0].all()
    # The control: one that points its way and is longer, it does.
    longer = torch.cat((x, 2 * x[:1]))
    assert torch.softmax(longer @ x[0], dim=0)[[0, -1]].diff() > 0
