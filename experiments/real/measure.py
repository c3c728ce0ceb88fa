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


def statement(model, examples, layer, head):
    """Count the examples in which a head does what is said, and every other head."""
    right, weight = [], []
    for sentence, query, target in examples:
        tokens, weights, _ = model.run(sentence)
        i, j = real.find(tokens, query), real.find(tokens, target)
        right.append(top_word(weights, tokens, query, target))  # (layers, h)
        weight.append(weights[layer, head, i, j])
    counts = torch.stack(right).sum(dim=0)  # (layers, h)
    of_others = counts.clone()
    of_others[layer, head] = -1
    weight = torch.stack(weight)
    return {
        "head": f"{layer}.{head}",
        "right": counts[layer, head].item(),
        "of": len(examples),
        "mean_weight": round(weight.mean().item(), 3),
        "lowest": round(weight.min().item(), 3),
        "best_other_head": of_others.max().item(),
    }


def flips(model, pairs, layer, head):
    """Count the pairs of sentences in which both look at their target."""
    right = []  # (pairs, layers, h)
    for both in pairs:
        looks = []
        for sentence, query, target in both:
            tokens, weights, _ = model.run(sentence)
            looks.append(top_word(weights, tokens, query, target))
        right.append(looks[0] & looks[1])
    counts = torch.stack(right).sum(dim=0)
    of_others = counts.clone()
    of_others[layer, head] = -1
    return {
        "head": f"{layer}.{head}",
        "right": counts[layer, head].item(),
        "of": len(pairs),
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
        for sentence, *both in sentences.labeled(examples):
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


# ---- head 3.1 with one part taken away ----


def _changed(state, how, seed=0):
    torch.manual_seed(seed)
    layer = SelfAttention_v2(384, 32, qkv_bias=True)
    if how != "random":
        layer.load_state_dict(state)
    if how == "one matrix":
        layer.W_key = layer.W_query
    return layer


@torch.no_grad()
def weights_of(layer, x, how):
    """Give a head's weights, whole or with one part taken away: (t, d) -> (t, t)."""
    if how == "mean":
        return torch.full((len(x), len(x)), 1 / len(x))
    q, k = layer.W_query(x), layer.W_key(x)
    return (q @ k.T / (1 if how == "undivided" else k.shape[-1] ** 0.5)).softmax(dim=-1)


def controls(model):
    """Count the pairs that flip, with the head whole and with a part taken away."""
    states = []
    for both in sentences.pairs():
        for sentence, *labels in both:
            tokens, _, all_states = model.run(sentence)
            states.append((all_states[3], tokens, labels))
    state, found = model.head(3, 1), {}
    for how in ("whole", "mean", "undivided", "one matrix", "random"):
        seeds = range(SEEDS) if how == "random" else [0]
        flipped, given, largest = [], [], []
        for seed in seeds:
            layer, right = _changed(state, how, seed), []
            for x, tokens, (query, target) in states:
                weights = weights_of(layer, x, how)
                i = real.find(tokens, query)
                # A mean has no largest weight; argmax would name one.
                chosen = how != "mean" and top_word(weights, tokens, query, target)
                right.append(bool(chosen))
                given.append(weights[i, real.find(tokens, target)].item())
                largest.append(weights[i].max().item())
            flipped.append(sum(map(all, zip(right[::2], right[1::2], strict=True))))
        found[how] = {
            "flipped": flipped if how == "random" else flipped[0],
            "of": len(states) // 2,
            "mean_weight": round(sum(given) / len(given), 3),
            "largest_weight": round(sum(largest) / len(largest), 3),
        }
    return found


def _rounded(tensor, digits=3):
    return (
        [round(x, digits) for x in tensor.tolist()]
        if tensor.ndim
        else round(tensor.item(), digits)
    )
