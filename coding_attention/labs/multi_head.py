"""The multi-head lab: all heads side by side, and what each adds to the output."""

import torch
import traitlets

from attention.functional import attention_weights, causal_mask
from attention.multi_head import MultiHeadAttention, MultiHeadAttentionWrapper
from coding_attention.labs import base

MOST_HEADS = 4
WIDEST_HEAD = 4
TIMES = 24  # multi_head.js has it, too
_heads_of = base.each("silenced", base.within(0, MOST_HEADS - 1))


class MultiHeadLab(base.SequenceLab):
    """The weights of all heads, and the way of one token's numbers through the layer.

    Section 3.6. The wrapper's heads hold the seed-123 weights; the split class gets
    the same ones, head below head, so that both give the same contexts. ``out_proj``
    is drawn as ``nn.Linear`` draws it. Drawn weights make all heads look alike, each
    close to the mean; so the lab opens with their queries 24 times as long.

    Traits:
        inputs, tokens: as in :class:`~coding_attention.labs.AttentionLab`.
        num_heads: h, from 1 to 4, at first 2.
        d_head: width of one head, from 1 to 4, at first 2: the wrapper's ``d_out``. The
            split class is given d_out = num_heads · d_head.
        token: index of the token whose way is drawn; the last one unless given.
        silenced: indices of the heads that are off.
        sharper: whether queries are multiplied by 24. Without that, the contexts of two
            heads of width two are the published ones. False for a given layer.
        layer: a :class:`~attention.MultiHeadAttention` of up to 4 heads, each up to 4
            wide, whose weights take the place of the drawn ones; its sizes then stay.

    Raises:
        traitlets.TraitError: a value does not fit; the message says why.
    """

    title = "Multi-head lab"
    shown = ("tokens", "num_heads", "d_head", "token", "silenced", "sharper")

    num_heads = base.Int(
        2, check=base.within(1, lambda lab: min(map(len, lab.heads.values())))
    )
    d_head = base.Int(2, check=base.one_of(lambda lab: [int(d) for d in lab.heads]))
    token = base.Int(first=lambda lab: len(lab.inputs) - 1, check=base.token_index)
    silenced = base.List(
        traitlets.Int(),
        check=lambda *given: sorted(set(_heads_of(*given))),
    )
    sharper = base.Bool(True)
    heads = base.Dict(
        first=lambda lab: {
            str(d): _heads(len(lab.inputs[0]), d) for d in range(1, WIDEST_HEAD + 1)
        }
    )
    out_proj = base.List(first=lambda lab: _out_proj())

    def __init__(self, layer=None, **kwargs):
        super().__init__(**kwargs if layer is None else kwargs | _of_layer(layer))

    def modules(self):
        """Give both classes in float64, with the lab's weights and no dropout."""
        d_in, t = len(self.inputs[0]), len(self.inputs)
        h, width = self.num_heads, self.d_head
        with torch.random.fork_rng(devices=[]):
            wrapper = MultiHeadAttentionWrapper(d_in, width, t, 0.0, h).double()
            split = MultiHeadAttention(d_in, h * width, t, 0.0, h).double()
        weights = self.heads[str(width)][:h]
        rows = torch.tensor(self.out_proj, dtype=torch.float64)[: h * width]
        rows = rows / (h * width) ** 0.5
        with torch.no_grad():
            for head, given in zip(wrapper.heads, weights, strict=True):
                for name in ("query", "key", "value"):
                    weight = torch.tensor(given[name], dtype=torch.float64)
                    if name == "query" and self.sharper:
                        weight = TIMES * weight
                    getattr(head, f"W_{name}").weight.copy_(weight)
            for name in ("W_query", "W_key", "W_value"):
                parts = [getattr(head, name).weight for head in wrapper.heads]
                getattr(split, name).weight.copy_(torch.cat(parts))
            split.out_proj.weight.copy_(rows[:, : h * width])
            split.out_proj.bias.copy_(rows[:, -1])
        return wrapper, split

    def compute(self):
        """Compute what the lab shows, with PyTorch in float64.

        Returns:
            A dict: the weights (h, t, t); the contexts of all heads from the wrapper
            and from the split class, (t, h · d_head) each; and for ``token`` what each
            head adds to the output, (h, h · d_head), and the output without the heads
            that are off.
        """
        batch = self.tensor("inputs").unsqueeze(0)
        wrapper, split = self.modules()
        out_proj, split.out_proj = split.out_proj, torch.nn.Identity()
        with torch.no_grad():
            x, mask = batch[0], causal_mask(batch.shape[1])
            weights = torch.stack(
                [
                    attention_weights(head.W_query(x), head.W_key(x), mask)
                    for head in wrapper.heads
                ]
            )  # (h, t, t)
            contexts = {"wrapper": wrapper(batch)[0], "split": split(batch)[0]}
            context = contexts["split"][self.token]
            # One row a head: its part of the context, and zeros for the others.
            own = torch.block_diag(*context.view(self.num_heads, 1, -1))
            added = torch.nn.functional.linear(own, out_proj.weight)
            on = [h for h in range(self.num_heads) if h not in self.silenced]
            output = out_proj(own[on].sum(dim=0))
        return {"weights": weights, **contexts, "added": added, "output": output}

    def fallback(self):
        """Give the weights of all heads as pictures."""
        h, width = self.num_heads, self.d_head
        caption = (
            f"{h} heads, {width} wide each: both classes give {h * width} numbers a "
            f"token, and with the same weights the same ones."
        )
        pictures = [
            base.heat_map(
                f"Causal attention weights of head {head}.",
                self.tokens,
                self.tokens,
                weights.tolist(),
            )
            for head, weights in enumerate(self.compute()["weights"])
        ]
        return base.static(self.title, caption, *pictures)


def _of_layer(layer):
    """Give the traits that show a ``MultiHeadAttention``."""
    width, h = layer.d_out, layer.num_heads
    weights = {
        name: getattr(layer, f"W_{name}").weight.detach().view(h, width // h, -1)
        for name in ("query", "key", "value")
    }
    heads = [
        {name: base.rows(weight[head]) for name, weight in weights.items()}
        for head in range(h)
    ]
    last = layer.out_proj
    rows = torch.cat((last.weight, last.bias.unsqueeze(-1)), dim=-1).detach()
    return {
        "heads": {str(width // h): heads},
        "out_proj": base.rows(rows * width**0.5),
        "num_heads": h,
        "d_head": width // h,
        "sharper": False,
    }


def _heads(d_in, d_head):
    """Give the weights of the seed-123 wrapper: one dict of (d_head, d_in) a head."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(123)
        wrapper = MultiHeadAttentionWrapper(d_in, d_head, 1, 0.0, MOST_HEADS)
    # Fewer heads draw the same numbers for those that they have.
    return [
        {
            name: base.rows(getattr(head, f"W_{name}").weight.detach())
            for name in ("query", "key", "value")
        }
        for head in wrapper.heads
    ]


def _out_proj():
    """Draw weights and bias of the widest out_proj, a row for each feature."""
    # Within ±1, to be divided by the root of the width; three decimals do.
    width = MOST_HEADS * WIDEST_HEAD
    draws = torch.Generator().manual_seed(123)
    rows = torch.rand(width, width + 1, generator=draws) * 2 - 1
    return [[round(x, 3) for x in row] for row in rows.tolist()]
