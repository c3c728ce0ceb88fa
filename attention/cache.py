"""The key-value cache: what generation needn't recompute."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import nn

from attention import validate

# PyTorch before 2.3 has no such function, and compiles nothing that uses a cache.
_is_compiling = getattr(torch.compiler, "is_compiling", lambda: False)


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
        # _keys and _values have free room at the end. Their index 0 is the token at
        # position _first; those from position _oldest up to length are kept.
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
        if keys.requires_grad or values.requires_grad:
            raise RuntimeError(
                "a cache is for generation and stores no gradients, but gradients are "
                "on. Call the layer under torch.no_grad(), or train it without a cache."
            )
        past, t = self.length, keys.shape[2]
        stop = past + t
        if past > 0:
            self._require_same_kind(layer, keys)
        if stop > context_length:
            raise ValueError(
                f"the cache holds {past} tokens and x adds {t}, but the layer takes at "
                f"most context_length={context_length}. Stop here, or clear the cache "
                f"and start again from the latest tokens."
            )
        oldest = _find_oldest_seen(past, window)
        if past > 0:
            self._require_kept(oldest)
        if _is_sealed(self._keys) or stop - self._first > self._keys.shape[2]:
            # Reserve all the room at once: growing by torch.cat would copy every
            # earlier token in each step. With a window, the tokens still seen move to
            # new memory once per quarter of a window.
            room = context_length if window is None else stop - oldest + window // 4
            self._move(oldest, room, like=keys)
        # A cache that outlives its model must not keep the model alive.
        self._layer = weakref.ref(layer)
        new = slice(past - self._first, stop - self._first)
        self._keys[:, :, new] = keys
        self._values[:, :, new] = values
        seen = slice(oldest - self._first, stop - self._first)
        given = self._keys[:, :, seen], self._values[:, :, seen]
        self.length, self._oldest = stop, _find_oldest_seen(stop, window)
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
        if not isinstance(length, int) or not 0 <= length <= self.length:
            raise ValueError(
                f"length must be a whole number from 0 to {self.length}, the number of "
                f"cached tokens, but got {length!r}. Pass how many tokens to keep, "
                f"such as cache.length - 1."
            )
        # A window starts as many tokens earlier as the next token stands earlier.
        self._require_kept(max(0, self._oldest - (self.length - length)))
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
        if rows.dtype not in (torch.int32, torch.int64) or rows.dim() != 1:
            raise ValueError(
                f"rows must contain integers in one dimension, (b,), but got "
                f"{rows.dtype} of shape {tuple(rows.shape)}. Pass which sequence each "
                f"new one continues: torch.tensor([0, 0, 1])."
            )
        if self.length > 0:
            self._keys = self._keys.index_select(0, rows)
            self._values = self._values.index_select(0, rows)

    def _require_same_kind(self, layer: nn.Module, keys: torch.Tensor) -> None:
        if self.layer is not None and self.layer is not layer:
            raise ValueError(
                "this cache was filled by another layer, which has different keys. "
                "Create one KeyValueCache() for each layer of a model."
            )
        if keys.shape[0] != self.batch_size:
            raise ValueError(
                f"x must have the batch size of the cached tokens, {self.batch_size}, "
                f"but got {keys.shape[0]}. Continue with the same sequences, or pass a "
                f"new KeyValueCache()."
            )
        if (keys.dtype, keys.device) != (self.dtype, self.device):
            raise ValueError(
                f"the cache holds {self.dtype} on {self.device}, but the new keys are "
                f"{keys.dtype} on {keys.device}. Move the model before the first "
                f"token, or pass a new KeyValueCache()."
            )

    def _require_kept(self, needed: int) -> None:
        """Require the tokens from position ``needed`` on."""
        if needed < self._oldest:
            raise ValueError(
                f"the cache holds only tokens from position {self._oldest} on, which "
                f"its layer's window needed, but now position {needed} is needed. Pass "
                f"a new KeyValueCache() and all tokens again."
            )

    def _move(self, oldest: int, room: int, like: torch.Tensor) -> None:
        """Reserve memory for ``room`` tokens; copy those from ``oldest`` on into it."""
        b, num_kv_heads, _, head_dim = like.shape
        kept, count = self._view_from(oldest), self.length - oldest
        moved = [like.new_empty(b, num_kv_heads, room, head_dim) for _ in kept]
        if count > 0:
            for old, new in zip(kept, moved, strict=True):
                new[:, :, :count] = old
        (self._keys, self._values), self._first = moved, oldest

    def _view_from(self, position: int) -> tuple[torch.Tensor, torch.Tensor]:
        kept = slice(position - self._first, self.length - self._first)
        return self._keys[:, :, kept], self._values[:, :, kept]

    def __getstate__(self) -> dict[str, Any]:
        keys, values = (part.clone() for part in self._view_from(self._oldest))
        places = {"length": self.length, "_first": self._oldest}
        return places | {"_oldest": self._oldest, "_keys": keys, "_values": values}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.clear()
        vars(self).update(state)

    def __deepcopy__(self, memo: dict[int, Any]) -> KeyValueCache:
        copied = KeyValueCache()
        copied.__setstate__(self.__getstate__())
        copied._layer = self._layer  # unlike a pickle, a copy keeps its layer
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
        kept = self._view_from(self._oldest)
        return sum(part.numel() for part in kept) * self.dtype.itemsize


def _is_sealed(stored: torch.Tensor) -> bool:
    """Return whether inference mode made this tensor, and has ended since.

    Then PyTorch refuses to write into it.
    """
    if _is_compiling():  # is_inference_mode_enabled can't be traced
        return False
    return stored.is_inference() and not torch.is_inference_mode_enabled()


def _find_oldest_seen(position: int, window: int | None) -> int:
    return 0 if window is None else max(0, position + 1 - window)
