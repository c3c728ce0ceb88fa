"""Exercises on causal attention: right answers and named mistakes."""

import torch
from torch import nn

from attention import CausalAttention, SelfAttention_v2, simple_self_attention


def hide(t, diagonal=1):
    return torch.ones(t, t).triu(diagonal).bool()


def hide_by_comparing(t):
    return torch.arange(t)[None, :] > torch.arange(t)[:, None]


def hide_by_loop(t):
    return torch.tensor([[j > i for j in range(t)] for i in range(t)])


def hidden(p):
    return hide(p.shape[1]) | p[:, None, :]


def hidden_by_sequence(p):
    return torch.stack([hide(len(row)) | row for row in p])


class Own(nn.Module):
    """Causal attention with room for a mistake."""

    fill, dim, power = -torch.inf, -1, 0.5

    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", hide(context_length))

    def forward(self, x):
        t = x.shape[1]
        if t > len(self.mask):
            raise ValueError("too many tokens")
        queries, keys = self.W_query(x), self.W_key(x)
        scores = queries @ keys.mT
        scores = scores.masked_fill(self.mask[:t, :t], self.fill)
        weights = torch.softmax(scores / keys.shape[-1] ** self.power, dim=self.dim)
        return self.dropout(weights) @ self.W_value(x)


class ZeroFill(Own):
    fill = 0.0


class OverQueries(Own):
    dim = -2


class NoRoot(Own):
    power = 1.0


class OutputDropped(Own):
    def forward(self, x):
        self.dropout, dropout = nn.Identity(), self.dropout
        context = super().forward(x)
        self.dropout = dropout
        return dropout(context)


class BothDropped(Own):
    def forward(self, x):
        return self.dropout(super().forward(x))


class Derived(CausalAttention):
    pass


class Wrapped(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.inner = CausalAttention(d_in, d_out, context_length, dropout)

    def forward(self, x):
        return self.inner(x)


class Raises(Own):
    def forward(self, x):
        raise RuntimeError("the reader's own words")


class OtherNames(nn.Module):
    """The mean of the past: causal, and no attention."""

    def __init__(self, d_in, d_out, context_length):
        super().__init__()
        self.project = nn.Linear(d_in, d_out)
        self.context_length = context_length

    def forward(self, x):
        t = x.shape[1]
        if t > self.context_length:
            raise ValueError("too many tokens")
        counts = torch.arange(1, t + 1, device=x.device)[:, None]
        return self.project((x.cumsum(1) / counts).to(x.dtype))


SCORES, ALL = torch.tensor([1.0, 2.0, 3.0]), torch.ones(3).bool()
SOME = torch.tensor([False, True, True])
RIGHT = {
    "causal-mask": {
        "triu": hide, "comparison": hide_by_comparing, "loop": hide_by_loop,
        "tril": lambda t: torch.ones(t, t).tril() == 0,
    },
    "padding": {"or": hidden, "sequence by sequence": hidden_by_sequence},
    "fill": {
        "all hidden": (SCORES, ALL),
        "scores as low": (torch.tensor([-1e9, 0.0]), torch.tensor([False, True])),
        "scores lower": [torch.tensor([-2e9, 0.0]), torch.tensor([False, True])],
    },
    "dropout": {"pair": (0.625, 0.5), "list": [0.5 / 0.8, 0.5],
                "tensor": torch.tensor([0.625, 0.5])},
    "mixed-scales": {"e": "e", "c": "c", "capital": " E "},
    "causal-class": {
        "own": Own, "an instance": Own(6, 4, 8, 0.0),
    },
}  # fmt: skip
WRONG = {
    "causal-mask": {
        "diagonal": (lambda t: hide(t, 0), "hides the diagonal too"),
        "keep": (lambda t: ~hide(t), "True = hide is asked for, as masked_fill"),
        "past": (lambda t: hide(t).T, "shows the future"),
        "one too far": (lambda t: hide(t, 2), "still sees the next one"),
        "numbers": (lambda t: torch.ones(t, t).triu(1), "but they hold numbers"),
        "integers": (lambda t: hide(t).long(), "but they hold numbers"),
        "to add": (
            lambda t: torch.full((t, t), -torch.inf).triu(1), "to add to the scores"
        ),
        "tril": (lambda t: torch.ones(t, t).tril(), "Ones stand where"),
        "six": (lambda t: hide(6), "Use num_tokens"),
        "nothing": (lambda t: torch.zeros(t, t).bool(), "It hides nothing"),
        "raises": (lambda t: hide(t)[t, t], "It raised IndexError"),
    },
    "padding": {
        "rows": (lambda p: hide(p.shape[1]) | p[:, :, None], "where padding asks"),
        "both": (
            lambda p: hidden(p) | p[:, :, None], "hides the rows of padding as well"
        ),
        "causal alone": (lambda p: hide(p.shape[1]), "and no padding"),
        "causal for each": (
            lambda p: hide(p.shape[1]).expand(len(p), -1, -1), "and no padding"
        ),
        "numbers": (lambda p: hidden(p).float(), "but they hold numbers"),
        "padding alone": (
            lambda p: p[:, None, :].expand(-1, p.shape[1], -1), "not the future"
        ),
        "and": (lambda p: hide(p.shape[1]) & p[:, None], "|, not &"),
        "xor": (lambda p: hide(p.shape[1]) ^ p[:, None], "not ^"),
        "keep": (lambda p: ~hidden(p), "True = hide is asked for"),
        "turned": (lambda p: hide(p.shape[1]) | ~p[:, None], "hides the real tokens"),
        "plus": (lambda p: hide(p.shape[1]) + p[:, None].int(), "Join them with |"),
        "heads": (lambda p: hidden(p)[:, None], "with an axis for heads"),
        "no axis": (lambda p: hide(p.shape[1]) | p, "It raised RuntimeError"),
    },
    "fill": {
        "nothing": ((SCORES, ~ALL), "Nothing is hidden"),
        "some": ((SCORES, SOME), "Both fills give the same weights"),
        "exchanged": ((ALL, SCORES), "Is the pair the other way round?"),
        "sizes": ((SCORES, ALL[:2]), "the shapes are (3,) and (2,)"),
        "lists": (([1.0], [True]), "one is [1.0] (list)"),
        "infinite": ((SCORES - torch.inf, ALL), "must be finite"),
        "integers": ((SCORES.int(), ALL), "must be finite floating-point"),
        "one": ((SCORES,), "but got 1 entries"),
    },
    "dropout": {
        "not rescaled": ((0.5, 0.4), "PyTorch rescales what it keeps"),
        "times 1.2": ((0.6, 0.5), "not the same as adding"),
        "by the rate": ((2.5, 0.5), "divides by the share that is dropped"),
        "times": ((0.4, 0.5), "multiplies by the share that is kept"),
        "doubled": ((1.0, 0.5), "at a rate of one half"),
        "exchanged": ((0.5, 0.625), "The other way round"),
        "mean": ((0.625, 0.4), "not rescaled in this mean"),
        "kept": ((0.625, 0.625), "This is the value when kept"),
        "unknown mean": ((0.625, 7), "Add up: how often"),
        "unknown": ((7, 7), "Which factor"),
        "words": (("a", "b"), "A pair of numbers"),
    },
    "mixed-scales": {
        "a": ("a", "scores of simple self-attention"),
        "b": ("B", "The mask is right"),
        "d": ("d", "Renormalizing is right"),
        "f": ("f", "One of the letters a to e"),
        "number": (5, "One of the letters a to e"),
    },
    "causal-class": {
        "zeros": (ZeroFill, "Hidden scores are set to 0"),
        "queries": (OverQueries, "Softmax over the wrong axis: the queries"),
        "no root": (NoRoot, "scaled twice, or without the root"),
        "no mask": (SelfAttention_v2, "no causal mask"),
        "dropout on the output": (OutputDropped, "Dropout acts in another place"),
        "dropout on the output, built": (
            OutputDropped(6, 4, 8, 0.0), "Dropout acts in another place"
        ),
        "dropout on both": (BothDropped, "Dropout acts on the weights, and on"),
        "the package": (CausalAttention, "the book's own CausalAttention"),
        "the package, built": (
            CausalAttention(6, 4, 8, 0.0), "the book's own CausalAttention"
        ),
        "derived": (Derived, "the book's own CausalAttention"),
        "wrapped": (Wrapped, "the book's own CausalAttention"),
        "raises": (Raises, "the reader's own words"),
        "no weights": (OtherNames, "Name the three layers W_query"),
        "not attention": (nn.Linear, "Tokens do not see each other"),
        "a function": (simple_self_attention, "A class derived from nn.Module"),
        "no module": (dict, "A class derived from nn.Module"),
    },
}  # fmt: skip
