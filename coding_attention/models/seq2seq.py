"""A recurrent encoder and decoder, with and without attention."""

import torch
from torch import nn

from coding_attention.models.translation import START


class Encoder(nn.Module):
    """Read a sequence word by word with a GRU.

    Args:
        words: size of the vocabulary.
        d_embed: width of a word's embedding.
        d_hidden: width of the hidden states.
    """

    def __init__(self, words, d_embed, d_hidden):
        super().__init__()
        self.embedding = nn.Embedding(words, d_embed)
        self.gru = nn.GRU(d_embed, d_hidden, batch_first=True)

    def forward(self, source):
        """Give the state at each word, (b, t, d_hidden), and the last (b, d_hidden)."""
        # (b, t, d_hidden), (1, b, d_hidden)
        states, last = self.gru(self.embedding(source))
        return states, last[0]


class LookBack(nn.Module):
    """Additive attention (Bahdanau et al., 2014): score = v · tanh(W s + U h).

    Args:
        d_hidden: width of the states of encoder and decoder.
    """

    def __init__(self, d_hidden):
        super().__init__()
        self.W = nn.Linear(d_hidden, d_hidden, bias=False)
        self.U = nn.Linear(d_hidden, d_hidden, bias=False)
        self.v = nn.Linear(d_hidden, 1, bias=False)

    def forward(self, state, states, keys):
        """Give a weighted mean of the encoder's states, and the weights.

        Args:
            state: the decoder's state, (b, d_hidden).
            states: the encoder's states, (b, t, d_hidden).
            keys: ``U(states)``, which is the same in every step.

        Returns:
            context (b, d_hidden) and weights (b, t).
        """
        query = self.W(state).unsqueeze(1)  # (b, 1, d_hidden)
        scores = self.v(torch.tanh(query + keys)).squeeze(2)  # (b, t)
        weights = torch.softmax(scores, dim=1)
        return (weights.unsqueeze(1) @ states).squeeze(1), weights


class Translator(nn.Module):
    """Encoder and decoder. Without attention, the last state is all the decoder gets.

    Both kinds feed a context vector into every decoding step. With attention it is
    made anew in each step; without, it is the encoder's last state throughout.

    Args:
        source_words, target_words: sizes of the vocabularies.
        d_embed: width of a word's embedding.
        d_hidden: width of the hidden states.
        attention: whether the decoder may look back.
    """

    def __init__(self, source_words, target_words, d_embed, d_hidden, attention):
        super().__init__()
        self.encoder = Encoder(source_words, d_embed, d_hidden)
        self.look_back = LookBack(d_hidden) if attention else None
        self.embedding = nn.Embedding(target_words, d_embed)
        self.step = nn.GRUCell(d_embed + d_hidden, d_hidden)
        self.out = nn.Linear(2 * d_hidden, target_words)

    def forward(self, source, length, target=None):
        """Translate; each step reads the word before it.

        Args:
            source: (b, t).
            length: words to write.
            target: the right words (b, length), read in place of the model's own in
                training. ``None``: each step reads what the step before wrote.

        Returns:
            scores (b, length, target_words) and the weights of each step
            (b, length, t), or ``None`` without attention.
        """
        states, state = self.encoder(source)
        context, weights = state, None
        keys = self.look_back.U(states) if self.look_back else None
        given = None if target is None else self.embedding(target).unbind(dim=1)
        word = self.embedding(torch.full_like(source[:, 0], START))  # (b, d_embed)
        known, looks = [], []
        for i in range(length):
            if self.look_back:
                context, weights = self.look_back(state, states, keys)
                looks.append(weights)
            state = self.step(torch.cat([word, context], dim=1), state)
            known.append(torch.cat([state, context], dim=1))  # (b, 2 d_hidden)
            if given is not None:
                word = given[i]
            else:
                word = self.embedding(self.out(known[-1]).argmax(dim=1))
        looks = torch.stack(looks, dim=1) if looks else None
        return self.out(torch.stack(known, dim=1)), looks
