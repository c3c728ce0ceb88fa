"""The key-value cache: what generation need not compute twice."""

import weakref

from attention import validate


class KeyValueCache:
    """Keys and values of the tokens that one layer has already seen.

    A causal token never looks ahead, so its key and value stay what they were when
    more tokens follow. Kept here, a new token costs one row of scores, t numbers,
    instead of all t · t.

    A cache starts empty. The first call of the layer that it is passed to decides
    batch size, dtype, device and room; from then on it belongs to that layer. A
    model with several layers needs one cache for each.

    Attributes:
        length: tokens kept so far, the position of the next one.
    """

    def __init__(self):
        self.clear()

    def clear(self):
        """Forget every token, so that another prompt, batch or layer can start."""
        self.length = 0
        self._layer = None
        self._keys = None  # (b, h_kv, context_length, d_head), filled up to length
        self._values = None

    def append(self, layer, keys, values):
        """Keep the keys and values of new tokens. Layers call this.

        Args:
            layer: the layer that made them; its ``context_length`` is the room.
            keys: (b, h_kv, t, d_head).
            values: the same shape.

        Returns:
            Keys and values of all tokens so far, (b, h_kv, length, d_head) each, as
            views of the cache.

        Raises:
            RuntimeError: gradients are on.
            ValueError: another layer's cache, no room for t more tokens, or another
                batch size, dtype or device than in the first call.
        """
        validate.cache_fits(self, layer, keys, values)
        if self._keys is None:
            # All the room at once: growing by torch.cat would copy every earlier
            # token in each step.
            b, num_kv_heads, _, head_dim = keys.shape
            room = (b, num_kv_heads, layer.context_length, head_dim)
            self._keys = keys.new_empty(room)
            self._values = values.new_empty(room)
            # A cache that outlives its model must not keep the model alive.
            self._layer = weakref.ref(layer)
        start, stop = self.length, self.length + keys.shape[2]
        self._keys[:, :, start:stop] = keys
        self._values[:, :, start:stop] = values
        self.length = stop
        return self._keys[:, :, :stop], self._values[:, :, :stop]

    @property
    def layer(self):
        """The layer that filled the cache, ``None`` while it is empty."""
        return None if self._layer is None else self._layer()

    @property
    def batch_size(self):
        """Sequences side by side, b. Only once something is kept."""
        return self._keys.shape[0]

    @property
    def dtype(self):
        """Type of the kept numbers. Only once something is kept."""
        return self._keys.dtype

    @property
    def device(self):
        """Where the kept numbers lie. Only once something is kept."""
        return self._keys.device

    @property
    def num_bytes(self):
        """Bytes of all keys and values kept, without the room still free."""
        if self._keys is None:
            return 0
        return 2 * self._keys[:, :, : self.length].numel() * self.dtype.itemsize
