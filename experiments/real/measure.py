"""What heads of the trained model do, counted, each beside its controls."""

import torch

from attention import SelfAttention_v2
from coding_attention.models import real
from experiments.real import sentences

SEEDS = 20
FOUND = {  # the heads of layer 1 that a list of sentences was made to find
    "same word": ("same word", False),
    "closing to opening": ("brackets", False),
    "opening to closing": ("brackets", True),
    "pronoun to noun": ("pronouns", False),
    "adjective to noun": ("adjectives", False),
    "noun to adjective": ("adjectives", True),
}


def top_word(weights, tokens, query, target):
    """Tell which heads give the target more than any other word: (…, t, t) -> (…).

    Left out are [CLS], [SEP] and the query itself.
    """
    i, j = real.find(tokens, query), real.find(tokens, target)
    row = weights[..., i, :].clone()
    row[..., [0, -1, i]] = 0
    return row.argmax(dim=-1) == j


def count_right(model, groups, layer, head):
    """Count the groups of examples in which a head looks at every target.

    Args:
        model: the trained model.
        groups: lists of (sentence, query, target): pairs, or single examples.
        layer: the head's layer.
        head: its number. The best of all other heads stands beside it.
    """
    right = []  # (groups, layers, h)
    for group in groups:
        looks = []
        for sentence, query, target in group:
            tokens, weights, _ = model.run(sentence)
            looks.append(top_word(weights, tokens, query, target))
        right.append(torch.stack(looks).all(dim=0))
    counts = torch.stack(right).sum(dim=0)
    of_others = counts.clone()
    of_others[layer, head] = -1
    return {
        "head": f"{layer}.{head}",
        "right": counts[layer, head].item(),
        "of": len(groups),
        "best_other_head": of_others.max().item(),
    }


def word_before(model, examples, least=0.97):
    """Count the words that give head 0.2's weight to the token before them."""
    weights = []
    for sentence in examples:
        tokens, seen, _ = model.run(sentence)
        weights.append(seen[:, :, range(1, len(tokens)), range(len(tokens) - 1)])
    weights = torch.cat(weights, dim=-1)  # (layers, h, words)
    many = (weights >= least).sum(dim=-1)
    best_other = many.clone()
    best_other[0, 2] = -1
    return {
        "head": "0.2",
        "least": least,
        "right": many[0, 2].item(),
        "of": weights.shape[-1],
        "lowest": round(weights[0, 2].min().item(), 3),
        "best_other_head": best_other.max().item(),
    }


def heads_of(model, layer, examples):
    """Give the mean weight of each head of a layer on fixed places, over all words."""
    places = {"before": -1, "itself": 0, "next": 1}
    sums, count = {}, 0
    for sentence in examples:
        tokens, seen, _ = model.run(sentence)
        rows = range(1, len(tokens) - 1)
        count += len(rows)
        parts = {name: [i + by for i in rows] for name, by in places.items()}
        parts |= {"[CLS]": [0] * len(rows), "[SEP]": [len(tokens) - 1] * len(rows)}
        for name, columns in parts.items():
            found = seen[layer][:, list(rows), columns].sum(dim=-1)
            sums[name] = sums.get(name, 0) + found
    return {name: _rounded(total / count) for name, total in sums.items()}


def relations(model, layer):
    """Count what each head of a layer finds in the lists of ``labeled.txt``.

    The weight beside each count tells a head that looks from one that only leans: its
    largest weight on a word may be small where most of it goes to [CLS].
    """
    found = {}
    for name, (examples, turned) in FOUND.items():
        right, given = [], []
        for sentence, *both in sentences.read_labeled(examples):
            tokens, seen, _ = model.run(sentence)
            query, target = reversed(both) if turned else both
            right.append(top_word(seen[layer], tokens, query, target))
            i, j = real.find(tokens, query), real.find(tokens, target)
            given.append(seen[layer, :, i, j])
        found[name] = {
            "of": len(right),
            "right": torch.stack(right).sum(dim=0).tolist(),
            "mean_weight": _rounded(torch.stack(given).mean(dim=0)),
        }
    return found


def idle(model, examples):
    """Count the heads that give over half of their weight to [CLS]."""
    given = []
    for sentence in examples:
        _, seen, _ = model.run(sentence)
        given.append(seen[:, :, 1:-1, 0])
    mean = torch.cat(given, dim=-1).mean(dim=-1)  # (layers, h)
    return {"heads": (mean > 0.5).sum().item(), "of": mean.numel(),
            "head 4.5": round(mean[4, 5].item(), 3)}  # fmt: skip


def cuts(model, layer, examples):
    """Measure how far the vector of a sentence turns when one head is silent.

    Returns:
        For each head the mean over the sentences of 1 − cosine, and as a yardstick the
        same between one sentence and the next.
    """
    whole = torch.stack([model.meaning(sentence) for sentence in examples])
    turned = []
    for head in range(12):
        without = [model.meaning(sentence, (layer, head)) for sentence in examples]
        turned.append((1 - (whole * torch.stack(without)).sum(dim=-1)).mean())
    between = (1 - (whole * whole.roll(1, dims=0)).sum(dim=-1)).mean()
    return {"turned": _rounded(torch.stack(turned), 4), "between": _rounded(between)}


# ---- head 3.1 beside random heads ----


@torch.no_grad()
def weights_of(layer, x):
    """Give a head's weights: (t, d) -> (t, t)."""
    q, k = layer.W_query(x), layer.W_key(x)
    return (q @ k.T / k.shape[-1] ** 0.5).softmax(dim=-1)


def controls(model):
    """Count the pairs that flip, with the trained head and with random ones."""
    pairs = sentences.pairs()
    states = {s: model.run(s) for both in pairs for s, *_ in both}

    def looks(layer, sentence, query, target):
        tokens, _, all_states = states[sentence]
        return top_word(weights_of(layer, all_states[3]), tokens, query, target)

    def count_flips(layer):
        return sum(all(looks(layer, *example) for example in both) for both in pairs)

    random = []
    for seed in range(SEEDS):
        torch.manual_seed(seed)
        random.append(count_flips(SelfAttention_v2(384, 32, qkv_bias=True)))
    trained = SelfAttention_v2(384, 32, qkv_bias=True)
    trained.load_state_dict(model.head(3, 1))
    return {
        "whole": {"flipped": count_flips(trained), "of": len(pairs)},
        "random": {"flipped": random, "of": len(pairs)},
    }


def _rounded(tensor, digits=3):
    return (
        [round(x, digits) for x in tensor.tolist()]
        if tensor.ndim
        else round(tensor.item(), digits)
    )
