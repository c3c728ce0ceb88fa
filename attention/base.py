"""Base classes of the listings: wrong calls are explained, and meta devices work.

Moving a layer off the meta device leaves its memory uninitialized, and ``nn.Linear``
resets itself. ``reset_parameters`` here fills the rest: plain parameters, and the mask.
The mask is a buffer, as in the chapter, so it is saved, loaded and moved with the
parameters. If a checkpoint has no mask, or an empty one arrives, it is rebuilt.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import nn

# Arguments of nn.MultiheadAttention, and what to write here instead.
ELSEWHERE = {
    "attn_mask": "A causal layer hides the future itself. For padding, pass "
    "key_padding_mask to FusedMultiHeadAttention.",
    "key_padding_mask": "FusedMultiHeadAttention takes it, and loads the same weights.",
    "is_causal": "CausalAttention and the classes with several heads always hide the "
    "future; FusedMultiHeadAttention(..., causal=False) doesn't.",
    "need_weights": "attention.functional.attention_weights computes them.",
}
ITSELF = (
    "It makes queries, keys and values from x itself. For keys and values from another "
    "sequence, use FusedMultiHeadAttention and layer(x, memory=other)."
)
# Patterns of names in other layers' state dicts: whose they are, and how to convert.
FOREIGN = {
    r"in_proj_weight": "nn.MultiheadAttention. Load convert.to_ours(state, "
    "convert.TORCH), with convert from attention",
    r"c_attn\.weight": "GPT-2. Load convert.to_ours(state, convert.GPT2), with convert "
    "from attention",
    r"heads\.0\.W_query\.weight": "MultiHeadAttentionWrapper. Load "
    "convert.to_ours(state, convert.wrapper(num_heads)), with convert from attention",
    r"W_query": "SelfAttention_v1, which stores matrices transposed. Load "
    '{f"{name}.weight": w.T for name, w in state.items()}',
}


class Layer(nn.Module):
    """An ``nn.Module`` that says what to do about a wrong call or foreign weights."""

    if not TYPE_CHECKING:

        def __call__(self, *given: Any, **named: Any) -> Any:
            """Run ``forward``; if the arguments don't fit it, say what does."""
            try:
                return super().__call__(*given, **named)
            except TypeError:
                _explain_call(self, given, named)
                raise

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *rest: Any
    ) -> None:
        super()._load_from_state_dict(state_dict, prefix, *rest)
        _, strict, _, unexpected_keys, error_messages = rest
        if strict:
            explain_weights(prefix, unexpected_keys, error_messages)


def explain_weights(prefix: str, unexpected: list[str], messages: list[str]) -> None:
    """Add whose weights the ``unexpected`` names belong to, and how to convert them."""
    names = [name[len(prefix) :] for name in unexpected if name.startswith(prefix)]
    for pattern, owner in FOREIGN.items():
        if any(re.fullmatch(pattern, name) for name in names):
            messages.append(f"These are the weights of {owner}.")


def _explain_call(layer: nn.Module, given: tuple[Any, ...], named: Any) -> None:
    try:
        inspect.signature(layer.forward).bind(*given, **named)
    except TypeError as error:
        unknown = [f"{name}=" for name in named if name != "x"]
        counted = [f"{len(given)} positional arguments"] if len(given) != 1 else []
        advice = ELSEWHERE.get(unknown[0][:-1], ITSELF) if unknown else ITSELF
        raise TypeError(
            f"{type(layer).__name__} is called with one tensor, layer(x), but got "
            f"{' and '.join([*counted, *unknown])}. {advice}"
        ) from error


class CausalModule(Layer):
    """An ``nn.Module`` whose buffer ``mask`` (t, t) always hides the future.

    A checkpoint without a mask loads strictly and gets the right one, even on a layer
    from the meta device. A mask in the checkpoint is loaded unchanged.
    """

    mask: torch.Tensor

    def reset_parameters(self) -> None:
        """Rebuild the mask. The projections reset themselves."""
        with torch.no_grad():
            self.mask.fill_(1).triu_(1)

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Self:
        was_meta = self.mask.is_meta
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        if was_meta and not self.mask.is_meta:  # to_empty leaves arbitrary numbers
            self.reset_parameters()
        return self

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *rest: Any
    ) -> None:
        # The caller hands over a dict of its own, so adding changes no checkpoint.
        if prefix + "mask" not in state_dict:
            weight = state_dict.get(prefix + "W_query.weight", self.mask)
            ones = torch.ones(self.mask.shape, dtype=weight.dtype, device=weight.device)
            state_dict[prefix + "mask"] = ones.triu(1)
        super()._load_from_state_dict(state_dict, prefix, *rest)
        # A mask for one token has nothing to hide.
        hides = self.mask.is_meta or len(self.mask) == 1 or bool(self.mask.any())
        if not hides:
            warnings.warn(
                "the mask in this state dict is all zero, so every token will see the "
                "future. For a causal layer, leave the mask out of the state dict: it "
                "is rebuilt.",
                stacklevel=2,
            )


class DrawnModule(Layer):
    """An ``nn.Module`` whose own parameters come from ``torch.rand``."""

    def reset_parameters(self) -> None:
        """Draw the parameters again, in the order they were created."""
        for parameter in self.parameters(recurse=False):
            nn.init.uniform_(parameter)  # over [0, 1), the numbers of torch.rand
