"""The multi-head lab: the wrapper and the split class are one function."""

import torch
import traitlets

from attention.chapter.labs import base
from attention.multi_head import MultiHeadAttention, MultiHeadAttentionWrapper

MOST_HEADS = 4
WIDEST_HEAD = 4


class MultiHeadLab(base.SequenceLab):
    """Both multi-head classes with the same weights, side by side.

    Section 3.6. The wrapper's heads hold the seed-123 weights; the split class gets
    the same ones, head below head, and no ``out_proj``. Both print the same.

    Traits:
        inputs, tokens: as in :class:`~attention.chapter.labs.AttentionLab`.
        num_heads: h, from 1 to 4.
        d_head: width of one head, from 1 to 4: the wrapper's ``d_out``. The split
            class is given d_out = num_heads · d_head.
        head: index of the head whose weights are shown.

    Raises:
        traitlets.TraitError: a value does not fit; the message says why.
    """

    script = "multi_head.js"
    title = "Multi-head lab"
    shown = ("tokens", "num_heads", "d_head", "head")

    num_heads = traitlets.Int(2, help="h").tag(sync=True, lab=True)
    d_head = traitlets.Int(2, help="width of a head").tag(sync=True, lab=True)
    head = traitlets.Int(0, help="which head").tag(sync=True, lab=True)
    heads = traitlets.Dict(help="weights by d_head").tag(sync=True)

    @traitlets.default("heads")
    def _default_heads(self):
        d_in = len(self.inputs[0])
        return {str(d): _heads(d_in, d) for d in range(1, WIDEST_HEAD + 1)}

    @traitlets.validate("num_heads")
    def _check_heads(self, proposal):
        return base.within("num_heads", proposal.value, 1, MOST_HEADS)

    @traitlets.validate("d_head")
    def _check_width(self, proposal):
        return base.within("d_head", proposal.value, 1, WIDEST_HEAD)

    @traitlets.validate("head")
    def _check_head(self, proposal):
        return base.within("head", proposal.value, 0, self.num_heads - 1)

    @traitlets.observe("num_heads")
    def _keep_head(self, change):
        self.head = min(self.head, change.new - 1)

    def modules(self):
        """Give both classes in float64, with the lab's weights and no dropout."""
        d_in, t = len(self.inputs[0]), len(self.inputs)
        h, width = self.num_heads, self.d_head
        with torch.random.fork_rng(devices=[]):
            wrapper = MultiHeadAttentionWrapper(d_in, width, t, 0.0, h).double()
            split = MultiHeadAttention(d_in, h * width, t, 0.0, h).double()
        weights = self.heads[str(width)][:h]
        with torch.no_grad():
            for head, given in zip(wrapper.heads, weights, strict=True):
                for name in ("query", "key", "value"):
                    weight = torch.tensor(given[name], dtype=torch.float64)
                    getattr(head, f"W_{name}").weight.copy_(weight)
            for name in ("W_query", "W_key", "W_value"):
                parts = [getattr(head, name).weight for head in wrapper.heads]
                getattr(split, name).weight.copy_(torch.cat(parts))
        split.out_proj = torch.nn.Identity()
        return wrapper, split

    def compute(self):
        """Compute what the lab shows, with PyTorch in float64.

        Returns:
            The outputs of wrapper and split class, (t, h · d_head) each, and the
            weights (t, t) of ``head``.
        """
        x = self.tensor("inputs")
        wrapper, split = self.modules()
        shown = wrapper.heads[self.head]
        with torch.no_grad():
            scores = shown.W_query(x) @ shown.W_key(x).T  # (t, t)
            future = torch.ones_like(scores, dtype=torch.bool).triu(diagonal=1)
            scores = scores.masked_fill(future, -torch.inf) / self.d_head**0.5
            batch = x.unsqueeze(0)
            return wrapper(batch)[0], split(batch)[0], torch.softmax(scores, dim=-1)

    def fallback(self):
        """Give one head's weights as a picture; both outputs as tables."""
        first, second, weights = (part.tolist() for part in self.compute())
        h, width = self.num_heads, self.d_head
        columns = [f"h{k} {i + 1}" for k in range(h) for i in range(width)]
        caption = (
            f"{h} heads, {width} wide each: both classes give {h * width} numbers a "
            f"token, and with the same weights the same ones."
        )
        return base.static(
            self.title,
            caption,
            base.heat_map(
                f"Causal attention weights of head {self.head}.",
                self.tokens,
                self.tokens,
                weights,
            ),
            base.table(
                "MultiHeadAttentionWrapper", "token", columns, self.tokens, first
            ),
            base.table(
                "MultiHeadAttention without out_proj",
                "token",
                columns,
                self.tokens,
                second,
            ),
        )


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
