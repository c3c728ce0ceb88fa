"""The key-value cache: what generation need not compute twice."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import nn

from attention.validate import Condition, require

NO_GRADIENTS = Condition(
    RuntimeError,
    "a cache is for generation and keeps no gradients, but gradients are on. Call the "
    "layer under torch.no_grad(), or train it without cache.",
)
ROOM = Condition(
    ValueError,
    "the cache holds {past} tokens and x adds {t}, but context_length={room} is the "
    "most that the layer takes. Stop here, or clear the cache and start again from the "
    "latest tokens.",
)
SAME_LAYER = Condition(
    ValueError,
    "this cache was filled by another layer, and the two have different keys. Make one "
    "KeyValueCache() for each layer of a model.",
)
SAME_BATCH = Condition(
    ValueError,
    "x must have the batch size of the cached tokens, {kept}, but got {given}. Continue"
    " with the same sequences, or pass a new KeyValueCache().",
)
SAME_KIND = Condition(
    ValueError,
    "the cache holds {cache.dtype} on {cache.device}, but the new keys are {keys.dtype}"
    " on {keys.device}. Move the model before the first token, or pass a new "
    "KeyValueCache().",
)


class KeyValueCache:
    """Keys and values of the tokens that one layer has already seen.

    A causal token never looks ahead, so its key and value stay what they were when
    more tokens follow. Kept here, a new token costs one row of scores, t numbers,
    instead of all t · t.

    A cache starts empty. The first call of the layer that it is passed to decides
    batch size, dtype, device and room; from then on it belongs to that layer. A
    model with several layers needs one cache for each.

    A cache can be copied and pickled. A pickle holds the tokens and not the layer, so
    what is read back belongs to the next layer that it is passed to.

    Attributes:
        length: tokens kept so far, the position of the next one.

    Example:
        >>> import attention, torch
        >>> layer = attention.FusedMultiHeadAttention(3, 4, 8, 0.0, num_heads=2)
        >>> x, cache = torch.randn(1, 6, 3), attention.KeyValueCache()
        >>> with torch.no_grad():
        ...     steps = [layer(x[:, i : i + 1], cache=cache) for i in range(6)]
        >>> torch.allclose(torch.cat(steps, dim=1), layer(x), atol=1e-6)
        True
        >>> cache.length
        6
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget every token, so that another prompt, batch or layer can start."""
        self.length = 0
        self._layer: weakref.ref[nn.Module] | None = None
        # (b, h_kv, context_length, d_head), filled up to length; without room at first
        self._keys = self._values = torch.empty(0, 0, 0, 0)

    def append(
        self,
        layer: nn.Module,
        keys: torch.Tensor,
        values: torch.Tensor,
        context_length: int,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Keep the keys and values of new tokens. Layers call this.

        Args:
            layer: the layer that made them.
            keys: (b, h_kv, t, d_head).
            values: the same shape.
            context_length: the most tokens that the layer takes, which is the room.

        Returns:
            Keys and values of all tokens so far, (b, h_kv, length, d_head) each, as
            views of the cache.

        Raises:
            RuntimeError: gradients are on.
            ValueError: another layer's cache, no room for t more tokens, or another
                batch size, dtype or device than in the first call.
        """
        learns = keys.requires_grad or values.requires_grad
        require(not learns, NO_GRADIENTS)
        past, t = self.length, keys.shape[2]
        require(past + t <= context_length, ROOM, past=past, t=t, room=context_length)
        if past > 0:
            self._must_fit(layer, keys)
        start, stop = past, past + t
        if stop > self._keys.shape[2]:
            self._keys = self._with_room(self._keys, keys, context_length)
            self._values = self._with_room(self._values, values, context_length)
        # A cache that outlives its model must not keep the model alive.
        self._layer = weakref.ref(layer)
        self._keys[:, :, start:stop] = keys
        self._values[:, :, start:stop] = values
        self.length = stop
        return self._keys[:, :, :stop], self._values[:, :, :stop]

    def _must_fit(self, layer: nn.Module, keys: torch.Tensor) -> None:
        owner = self.layer
        require(owner is None or owner is layer, SAME_LAYER)
        b = keys.shape[0]
        require(b == self.batch_size, SAME_BATCH, kept=self.batch_size, given=b)
        same = (keys.dtype, keys.device) == (self.dtype, self.device)
        require(same, SAME_KIND, cache=self, keys=keys)

    def _with_room(
        self, kept: torch.Tensor, new: torch.Tensor, context_length: int
    ) -> torch.Tensor:
        # All the room at once: growing by torch.cat would copy every earlier token in
        # each step.
        b, num_kv_heads, _, head_dim = new.shape
        grown = new.new_empty(b, num_kv_heads, context_length, head_dim)
        if self.length > 0:
            grown[:, :, : self.length] = kept[:, :, : self.length]
        return grown

    def __getstate__(self) -> dict[str, Any]:
        kept = slice(None), slice(None), slice(self.length)
        keys, values = self._keys[kept].clone(), self._values[kept].clone()
        return {"length": self.length, "_keys": keys, "_values": values}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.clear()
        vars(self).update(state)

    def __deepcopy__(self, memo: dict[int, Any]) -> KeyValueCache:
        copied = KeyValueCache()
        copied.__setstate__(self.__getstate__())
        copied._layer = self._layer  # the copy goes on with the same layer
        return copied

    @property
    def layer(self) -> nn.Module | None:
        """The layer that filled the cache, ``None`` while it is empty."""
        return None if self._layer is None else self._layer()

    @property
    def batch_size(self) -> int:
        """Sequences side by side, b. Only once something is kept."""
        return self._keys.shape[0]

    @property
    def dtype(self) -> torch.dtype:
        """Type of the kept numbers. Only once something is kept."""
        return self._keys.dtype

    @property
    def device(self) -> torch.device:
        """Where the kept numbers lie. Only once something is kept."""
        return self._keys.device

    @property
    def num_bytes(self) -> int:
        """Bytes of all keys and values kept, without the room still free."""
        return 2 * self._keys[:, :, : self.length].numel() * self.dtype.itemsize
