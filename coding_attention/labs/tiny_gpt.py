"""The Tiny GPT lab: a model over its training, and run in the page on any text."""

import base64
import contextlib
import math

import numpy as np
import torch
import traitlets

from coding_attention.labs import base
from coding_attention.models import heads
from coding_attention.models.tiny_gpt import GPTConfig, TinyGPT


def _row(width):
    """How a row of numbers lies in the bytes: its scale, then its steps."""
    return np.dtype([("scale", "<f4"), ("steps", "i1", (width,))])


def _pack(parameter):
    """Round each row to steps of a 127th of its largest number."""
    rows = parameter.reshape(-1, parameter.shape[-1]).numpy()
    packed = np.zeros(len(rows), _row(rows.shape[1]))
    packed["scale"] = np.maximum(np.abs(rows).max(axis=1) / 127, 1e-30)
    packed["steps"] = np.rint(rows / packed["scale"][:, None])
    return packed.tobytes()


def _tokens(lab, name, value):
    most, last = lab.sizes["context_length"], lab.sizes["vocab_size"] - 1
    if not 1 <= len(value) <= most:
        raise traitlets.TraitError(
            f"{name} must be from 1 to {most}, but got {len(value)}."
        )
    return base.each("a token", base.within(0, last))(lab, name, value)


def _last_head(lab):
    return lab.sizes["num_blocks"] * lab.sizes["num_heads"] - 1


def _last_step(lab):
    return len(lab.history["steps"]) - 1


class TinyGptLab(base.Lab):
    """A ``TinyGPT`` over its training, with all its heads, which can be switched off.

    The weights after the last step travel with the page, each row as a scale and steps
    from -127 to 127, and the whole model is computed where it is read. Of the steps
    before, the page has the patterns of one sentence.

    Args:
        model: a trained ``TinyGPT``.
        words: a name for each token of its vocabulary. Single letters are read one by
            one from what a reader types, longer names as words.

    Traits:
        tokens: the sequence, indices into ``words``.
        silenced: heads that say nothing, counted through all blocks from 0.
        at: index of the token that looks and whose next token is predicted; -1 is the
            last one.
        history: dict about the training: ``steps``, ``losses`` at these steps,
            ``curve``, pairs (step, loss), ``tokens``, a sentence twice, and
            ``patterns`` (steps, heads, t, t) on it; only the last step unless given.
        step: which of the steps is shown; the last one unless given.

    Raises:
        traitlets.TraitError: a value does not fit; the message says why.
    """

    title = "Tiny GPT lab"
    shown = ("tokens", "silenced", "at", "step")

    words = base.List(traitlets.Unicode())
    tokens = base.List(traitlets.Int(), check=_tokens)
    silenced = base.List(
        traitlets.Int(), check=base.each("a silenced head", base.within(0, _last_head))
    )
    at = base.Int(-1, check=base.within(-1, lambda lab: len(lab.tokens) - 1))
    history = base.Dict(
        {"steps": [0], "losses": [0.0], "curve": [], "tokens": [], "patterns": []}
    )
    step = base.Int(first=_last_step, check=base.within(0, _last_step))
    sizes = traitlets.Dict().tag(sync=True)
    shapes = traitlets.List().tag(sync=True)
    weights = traitlets.Unicode().tag(sync=True)

    def __init__(self, model, words, **state):
        parameters = sorted(model.named_parameters())
        config = model.config
        if len(words) != config.vocab_size:
            raise traitlets.TraitError(
                f"words must name each of the model's {config.vocab_size} tokens, but "
                f"got {len(words)}."
            )
        sizes = {
            "vocab_size": config.vocab_size, "context_length": config.context_length,
            "d_model": config.d_model, "num_heads": config.num_heads,
            "num_blocks": config.num_blocks,
        }  # fmt: skip
        self.set_trait("sizes", sizes)
        self.set_trait("shapes", [[name, list(p.shape)] for name, p in parameters])
        data = b"".join(_pack(p.detach()) for _, p in parameters)
        self.set_trait("weights", base64.b64encode(data).decode())
        super().__init__(words=list(words), **state)

    def model(self):
        """Build the model from the rounded weights, in float64."""
        model = TinyGPT(GPTConfig(**self.sizes)).double().eval()
        data = base64.b64decode(self.weights)
        start, state = 0, model.state_dict()
        for name, shape in self.shapes:
            rows = np.frombuffer(data, _row(shape[-1]), math.prod(shape[:-1]), start)
            values = rows["scale"][:, None].astype(float) * rows["steps"]
            state[name] = torch.from_numpy(values).view(shape)
            start += rows.nbytes
        model.load_state_dict(state)
        return model

    @torch.no_grad()
    def compute(self):
        """Compute what the lab shows, with PyTorch in float64.

        Returns:
            The weights of all heads (blocks, h, t, t), and the probabilities of the
            next token at each position (t, vocab_size), after the last step and
            without the silenced heads.
        """
        model, tokens = self.model(), torch.tensor([self.tokens])
        with contextlib.ExitStack() as stack:
            for head in self.silenced:
                place = divmod(head, self.sizes["num_heads"])
                stack.enter_context(heads.without_head(model, *place))
            patterns = heads.attention_weights(model, tokens)[0]
            return patterns, model(tokens)[0].softmax(dim=-1)

    def head_names(self):
        """Name the heads of all blocks in a row."""
        blocks, count = self.sizes["num_blocks"], self.sizes["num_heads"]
        return [
            f"block {b + 1}, head {h + 1}" for b in range(blocks) for h in range(count)
        ]

    def fallback(self):
        """Give all heads as pictures, with the likeliest next tokens in words."""
        patterns, probabilities = self.compute()
        names = [self.words[token] for token in self.tokens]
        top = probabilities[self.at].topk(3)
        told = [
            f"{self.words[i]} {p:.2f}"
            for p, i in zip(top.values.tolist(), top.indices.tolist(), strict=True)
        ]
        caption = f"Next after “{' '.join(names)}”: {', '.join(told)}."
        every_head = zip(self.head_names(), patterns.flatten(0, 1), strict=True)
        pictures = [
            base.heat_map(f"Attention weights of {name}.", names, names, pattern)
            for name, pattern in every_head
        ]
        return base.static(self.title, caption, *pictures)
