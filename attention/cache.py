"""The key-value cache: what generation needn't recompute."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import nn

from attention import validate
from attention.validate import Condition, require

# Before 2.3 PyTorch can't say, and stops compiling at a cache anyway.
_is_compiling = getattr(torch.compiler, "is_compiling", lambda: False)

NO_GRADIENTS = Condition(
    RuntimeError,
    "a cache is for generation and stores no gradients, but gradients are on. Call the "
    "layer under torch.no_grad(), or train it without a cache.",
)
ROOM = Condition(
    ValueError,
    "the cache holds {past} tokens and x adds {t}, but the layer takes at most "
    "context_length={room}. Stop here, or clear the cache and start again from the "
    "latest tokens.",
)
SAME_LAYER = Condition(
    ValueError,
    "this cache was filled by another layer, which has different keys. Create one "
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
FORGOTTEN = Condition(
    ValueError,
    "the cache holds only tokens from position {oldest} on, which its layer's window "
    "needed, but now position {needed} is needed. Pass a new KeyValueCache() and all "
    "tokens again.",
)
CROP = Condition(
    ValueError,
    "length must be a whole number from 0 to {there}, the number of cached tokens, but "
    "got {given!r}. Pass how many tokens to keep, such as cache.length - 1.",
)
ROWS = Condition(
    ValueError,
    "rows must contain integers in one dimension, (b,), but got {dtype} of shape "
    "{shape}. Pass which sequence each new one continues: torch.tensor([0, 0, 1]).",
)


class KeyValueCache:
    """Keys and values of the tokens that one layer has already seen.

    A causal token never looks ahead, so its key and value don't change when more
    tokens follow. With these cached, a new token costs one row of t scores instead of
    all t · t.

    A cache starts empty. The first layer called with it sets its batch size, dtype,
    device and room, and from then on it belongs to that layer. A model with several
    layers needs one cache for each.

    For a layer with a ``window``, a cache keeps the window - 1 tokens that the next one
    sees and drops older ones, so it stops growing.

    A cache can be copied and pickled. A pickle contains its tokens, not the layer, so
    an unpickled cache belongs to the next layer it is passed to.

    A cache doesn't notice that its layer got new parameters, or that another prompt
    begins: its tokens would be continued. Call :meth:`clear` in both cases.

    Attributes:
        length: tokens so far, the position of the next one.

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
        # Along the axis of tokens there may be room for more. The token at position p
        # stands at p - _first; of those before length, all from _oldest on are kept.
        self._first = self._oldest = 0
        self._keys = self._values = torch.empty(0, 0, 0, 0)

    def append(
        self,
        layer: nn.Module,
        keys: torch.Tensor,
        values: torch.Tensor,
        context_length: int,
        window: int | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Store the keys and values of new tokens. Layers call this.

        Args:
            layer: the layer that made them.
            keys: (b, h_kv, t, d_head).
            values: the same shape.
            context_length: maximum number of tokens the layer takes.
            window: maximum number of tokens each sees; ``None`` means all.

        Returns:
            Keys and values of all tokens that a new one sees, in order, new ones last:
            (b, h_kv, t_k, d_head) each, as views of the cache.

        Raises:
            RuntimeError: gradients are on.
            ValueError: the cache belongs to another layer, has no room for t more
                tokens, has dropped tokens that the layer needs, or was filled with
                another batch size, dtype or device.
        """
        learns = keys.requires_grad or values.requires_grad
        require(not learns, NO_GRADIENTS)
        past, t = self.length, keys.shape[2]
        stop = past + t
        if past > 0:
            self._must_fit(layer, keys)
        require(stop <= context_length, ROOM, past=past, t=t, room=context_length)
        oldest = _oldest_seen(past, window)
        if past > 0:
            holds = self._oldest <= oldest
            require(holds, FORGOTTEN, oldest=self._oldest, needed=oldest)
        # What inference mode has stored can't be written to outside of it.
        if _is_sealed(self._keys) or stop - self._first > self._keys.shape[2]:
            # All the room at once: growing by torch.cat would copy every earlier token
            # in each step. With a window, what is still seen moves now and then.
            room = context_length if window is None else stop - oldest + window // 4
            self._move(oldest, room, like=keys)
        # A cache that outlives its model must not keep the model alive.
        self._layer = weakref.ref(layer)
        new = slice(past - self._first, stop - self._first)
        self._keys[:, :, new] = keys
        self._values[:, :, new] = values
        seen = slice(oldest - self._first, stop - self._first)
        given = self._keys[:, :, seen], self._values[:, :, seen]
        self.length, self._oldest = stop, _oldest_seen(stop, window)
        if window is not None and self._keys.shape[2] > 2 * window:  # a long prompt
            self._move(self._oldest, 2 * window, like=keys)
        return given

    def crop(self, length: int) -> None:
        """Forget the tokens from position ``length`` on.

        For decoding that guesses several tokens and discards some of them.

        Args:
            length: how many tokens to keep, at most the current ones.

        Raises:
            ValueError: ``length`` isn't a whole number up to the current length, or the
                layer has a window and tokens that the next one sees were dropped.

        Example:
            >>> import attention, torch
            >>> layer = attention.FusedMultiHeadAttention(3, 4, 8, 0.0, num_heads=2)
            >>> x, cache = torch.randn(1, 6, 3), attention.KeyValueCache()
            >>> with torch.no_grad():
            ...     guessed = layer(x, cache=cache)
            ...     cache.crop(4)
            ...     again = layer(x[:, 4:], cache=cache)
            >>> torch.allclose(again, guessed[:, 4:], atol=1e-6)
            True
        """
        whole = isinstance(length, int) and 0 <= length <= self.length
        require(whole, CROP, given=length, there=self.length)
        back = self.length - length
        needed = max(0, self._oldest - back)  # by the token that would be next
        require(needed == self._oldest, FORGOTTEN, oldest=self._oldest, needed=needed)
        self.length = length
        if length == 0:
            self.clear()

    def reorder(self, rows: torch.Tensor) -> None:
        """Continue sequence i from what sequence ``rows[i]`` has seen, for beam search.

        Args:
            rows: integers (b,), each the index of a cached sequence. The new batch may
                be larger or smaller: ``torch.zeros(4, dtype=torch.long)`` makes four
                copies of the first.

        Raises:
            TypeError, ValueError: ``rows`` is not a tensor of integers (b,).
            IndexError: from PyTorch, if there is no such sequence.

        Example:
            >>> import attention, torch
            >>> layer = attention.FusedMultiHeadAttention(3, 4, 8, 0.0, num_heads=2)
            >>> cache = attention.KeyValueCache()
            >>> with torch.no_grad():
            ...     _ = layer(torch.randn(2, 6, 3), cache=cache)
            >>> cache.reorder(torch.tensor([1, 1, 0]))
            >>> cache.batch_size
            3
        """
        validate.instance("rows", rows, torch.Tensor, "Pass torch.tensor([0, 0, 1]).")
        whole = rows.dtype in (torch.int32, torch.int64) and rows.dim() == 1
        require(whole, ROWS, dtype=rows.dtype, shape=tuple(rows.shape))
        if self.length > 0:
            self._keys = self._keys.index_select(0, rows)
            self._values = self._values.index_select(0, rows)

    def _must_fit(self, layer: nn.Module, keys: torch.Tensor) -> None:
        owner = self.layer
        require(owner is None or owner is layer, SAME_LAYER)
        b = keys.shape[0]
        require(b == self.batch_size, SAME_BATCH, kept=self.batch_size, given=b)
        same = (keys.dtype, keys.device) == (self.dtype, self.device)
        require(same, SAME_KIND, cache=self, keys=keys)

    def _move(self, oldest: int, room: int, like: torch.Tensor) -> None:
        """Make new room, and copy what is kept from position ``oldest`` on."""
        b, num_kv_heads, _, head_dim = like.shape
        kept, count = self._kept(oldest), self.length - oldest
        moved = [like.new_empty(b, num_kv_heads, room, head_dim) for _ in kept]
        if count > 0:
            for old, new in zip(kept, moved, strict=True):
                new[:, :, :count] = old
        (self._keys, self._values), self._first = moved, oldest

    def _kept(self, oldest: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        start = (self._oldest if oldest is None else oldest) - self._first
        kept = slice(start, self.length - self._first)
        return self._keys[:, :, kept], self._values[:, :, kept]

    def __getstate__(self) -> dict[str, Any]:
        keys, values = (part.clone() for part in self._kept())
        places = {"length": self.length, "_first": self._oldest}
        return places | {"_oldest": self._oldest, "_keys": keys, "_values": values}

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
        """Batch size b. Only once the cache has tokens."""
        return self._keys.shape[0]

    @property
    def dtype(self) -> torch.dtype:
        """Dtype of keys and values. Only once the cache has tokens."""
        return self._keys.dtype

    @property
    def device(self) -> torch.device:
        """Device of keys and values. Only once the cache has tokens."""
        return self._keys.device

    @property
    def num_bytes(self) -> int:
        """Bytes of all stored keys and values, not counting free room."""
        return sum(part.numel() for part in self._kept()) * self.dtype.itemsize


def _is_sealed(stored: torch.Tensor) -> bool:
    if _is_compiling():  # which can't trace the question
        return False
    return stored.is_inference() and not torch.is_inference_mode_enabled()


def _oldest_seen(position: int, window: int | None) -> int:
    return 0 if window is None else max(0, position + 1 - window)
