"""A small GPT, built from what the chapter taught: a readable file of its own."""

from dataclasses import dataclass

import torch
from torch import nn

from attention import MultiHeadAttention


@dataclass(frozen=True)
class GPTConfig:
    """The sizes of a GPT.

    Attributes:
        vocab_size: number of different tokens.
        context_length: the most tokens that one sequence may have.
        d_model: width of a token all the way through.
        num_heads: heads in each block, h.
        num_blocks: blocks on top of each other.
        dropout: share of the attention weights that is dropped in training.
        qkv_bias: whether the query, key and value projections add a bias.
    """

    vocab_size: int
    context_length: int
    d_model: int
    num_heads: int
    num_blocks: int
    dropout: float = 0.0
    qkv_bias: bool = False


class Block(nn.Module):
    """Attention, which mixes tokens, then a small network for each token by itself.

    Both read normalized vectors and add to what they have read, so that a block
    changes a token and does not replace it (Radford et al., 2019).

    Args:
        config: the sizes.
        attention: the class of the attention layer.
    """

    def __init__(self, config, attention):
        super().__init__()
        d = config.d_model
        self.norm_attention = nn.LayerNorm(d)
        self.attention = attention(
            d,
            d,
            config.context_length,
            config.dropout,
            config.num_heads,
            qkv_bias=config.qkv_bias,
        )
        self.norm_network = nn.LayerNorm(d)
        self.network = nn.Sequential(
            nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d)
        )

    def forward(self, x, **cache):
        """Give each token a new vector: (b, t, d_model) -> (b, t, d_model)."""
        x = x + self.attention(self.norm_attention(x), **cache)
        return x + self.network(self.norm_network(x))


class TinyGPT(nn.Module):
    """Token and position embeddings, blocks, and a score for each possible next token.

    Args:
        config: a :class:`GPTConfig`.
        attention: the class of the attention layers. ``FusedMultiHeadAttention``
            loads the same weights and can use a cache.
    """

    def __init__(self, config, attention=MultiHeadAttention):
        super().__init__()
        self.config = config
        self.token_embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.position_embedding = nn.Embedding(config.context_length, config.d_model)
        blocks = [Block(config, attention) for _ in range(config.num_blocks)]
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(config.d_model)
        self.out = nn.Linear(config.d_model, config.vocab_size, bias=False)

    def forward(self, tokens, caches=None):
        """Score every token of the vocabulary as the next one, at every position.

        Args:
            tokens: integers (b, t), t ≤ context_length.
            caches: one ``KeyValueCache`` a block, whose tokens come before ``tokens``.

        Returns:
            Scores (b, t, vocab_size).

        Raises:
            ValueError: more tokens than ``context_length``.
        """
        start = caches[0].length if caches else 0
        stop = start + tokens.shape[1]
        if stop > self.config.context_length:
            raise ValueError(
                f"the model takes {self.config.context_length} tokens, but got {stop}. "
                f"Pass fewer, such as tokens[:, -{self.config.context_length}:]."
            )
        positions = torch.arange(start, stop, device=tokens.device)  # (t,)
        # (b, t, d_model) + (t, d_model) -> (b, t, d_model)
        x = self.token_embedding(tokens) + self.position_embedding(positions)
        for i, block in enumerate(self.blocks):
            x = block(x, cache=caches[i]) if caches else block(x)
        return self.out(self.norm(x))  # (b, t, d_model) -> (b, t, vocab_size)


@torch.no_grad()
def generate(model, tokens, count, generator=None, caches=None):
    """Continue a sequence, token by token.

    Args:
        model: a :class:`TinyGPT`.
        tokens: the beginning, integers (b, t).
        count: tokens to add.
        generator: draws each token by its probability; ``None`` takes the likeliest.
        caches: empty ``KeyValueCache`` objects, one a block: then each step computes
            its new token only.

    Returns:
        All tokens, (b, t + count).
    """
    new = tokens
    for _ in range(count):
        scores = model(new if caches else tokens, caches)[:, -1]  # (b, vocab_size)
        if generator is None:
            new = scores.argmax(dim=-1, keepdim=True)  # (b, 1)
        else:
            new = torch.multinomial(scores.softmax(dim=-1), 1, generator=generator)
        tokens = torch.cat([tokens, new], dim=1)
    return tokens
