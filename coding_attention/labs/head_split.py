"""The head-split lab: where every entry goes when heads are split and joined."""

import torch
import traitlets

from coding_attention.figures import tagged
from coding_attention.labs import base

WIDTHS = (2, 4, 6, 8, 12)
STEPS = ("x", "view", "transpose", "scores", "transpose back", "join")


def _fitting(check):
    def both(lab, name, value):
        sizes = {"d_out": lab.d_out, "num_heads": lab.num_heads}
        sizes[name] = check(lab, name, value)
        if sizes["d_out"] % sizes["num_heads"]:
            raise traitlets.TraitError(
                f"num_heads must divide d_out, but got d_out={sizes['d_out']} and "
                f"num_heads={sizes['num_heads']}. Set the other first."
            )
        return value

    return both


class HeadSplitLab(base.Lab):
    """``arange`` through view, transpose, scores, transpose back and join.

    Section 3.6.2. Every entry carries the color of its token and the mark of its head,
    and moves from step to step, so that one sees which entries one ``view`` straight to
    (b, h, t, d_head) mixes up.

    Traits:
        batch: b, from 1 to 2, at first 2.
        num_tokens: t, from 1 to 6, at first 3.
        d_out: 2, 4, 6, 8 or 12, at first 4.
        num_heads: h, which divides d_out, at first 2.
        step: 0 x, 1 view, 2 transpose, 3 scores, 4 transpose back, 5 join.
        straight: whether one view to (b, h, t, d_head) replaces steps 1 and 2: a bug.

    Raises:
        traitlets.TraitError: a value does not fit; the message says why.
    """

    title = "Head-split lab"
    shown = ("batch", "num_tokens", "d_out", "num_heads", "step", "straight")

    batch = base.Int(2, check=base.within(1, 2))
    num_tokens = base.Int(3, check=base.within(1, 6))
    d_out = base.Int(4, check=_fitting(base.one_of(lambda lab: WIDTHS)))
    num_heads = base.Int(2, check=_fitting(base.within(1, WIDTHS[-1])))
    step = base.Int(2, check=base.within(0, len(STEPS) - 1))
    straight = base.Bool(False)

    def compute(self):
        """Compute every step with PyTorch, as int64 tensors.

        Returns:
            A dict of the steps by name.
        """
        b, t, d, h = self.batch, self.num_tokens, self.d_out, self.num_heads
        x = torch.arange(b * t * d).view(b, t, d)
        viewed = x.view(b, t, h, d // h)  # (b, t, d_out) -> (b, t, h, d_head)
        split = viewed.transpose(1, 2)  # (b, t, h, d_head) -> (b, h, t, d_head)
        if self.straight:
            viewed = split = x.view(b, h, t, d // h)
        back = split.transpose(1, 2)  # (b, h, t, d_head) -> (b, t, h, d_head)
        return {
            "x": x,
            "view": viewed,
            "transpose": split,
            "scores": split @ split.transpose(2, 3),  # (b, h, t, t)
            "transpose back": back,
            "join": back.contiguous().view(b, t, d),
        }

    def fallback(self):
        """Give the right split and the one that mixes tokens as pictures."""
        x = self.compute()["x"]
        t, h, width = self.num_tokens, self.num_heads, self.d_out // self.num_heads
        right = x.view(self.batch, t, h, width).transpose(1, 2)
        names = [f"head {head}" for head in range(h)]
        pictures = [
            base.drawing(tagged(split[0], self.d_out, h, title, names), words)
            for split, title, words in (
                (
                    right,
                    "view, then transpose",
                    "After view and transpose, each head has all tokens.",
                ),
                (
                    x.view(right.shape),
                    "one straight view",
                    "After one straight view, each head mixes tokens.",
                ),
            )
        ]
        caption = (
            f"The entries of x, {tuple(x.shape)}, split into {h} heads, "
            f"{tuple(right.shape)}: t is the token of an entry and f its feature."
        )
        return base.static(self.title, caption, *pictures)
