"""What ``theme/sentence/weights.js`` holds, run in PyTorch, and what its heads do."""

import base64
import json
import re
import unicodedata
from pathlib import Path

import numpy as np
import torch

from experiments.real import sentences
from experiments.real.model import MiniLM

FILE = Path(__file__).parents[2] / "theme" / "sentence" / "weights.js"
WHOLE = 3  # layers that are there whole; of the next one, only queries and keys
BITS, GROUP = 5, 64  # 64 numbers of a row share a scale
LOWEST = -(2 ** (BITS - 1))
WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|\S")
PART_OF_WORD = re.compile(r"[^\W_]+|\S")
# What each head is said to do, by the list of typed.txt that asks for it.
LISTS = {"1.6": "brackets", "1.3": "pronouns", "3.1": "pronouns", "2.9": "same word"}


def unpack(data):
    """Read what pack wrote."""
    bits = np.unpackbits(np.frombuffer(data, np.uint8)).reshape(-1, BITS)
    steps = bits @ (1 << np.arange(BITS)[::-1])
    return torch.from_numpy(steps).float() + LOWEST


def from_half(data):
    """Read numbers of 16 bits."""
    return torch.from_numpy(np.frombuffer(data, "<f2").astype(np.float32))


class SmallModel(MiniLM):
    """What theme/sentence/weights.js holds, run in PyTorch."""

    def __init__(self, path=FILE):
        text = path.read_text(encoding="utf-8")
        given = json.loads(text[text.index("(") + 1 : text.rindex(")")])
        self.data = base64.b64decode(given["data"])
        pieces = given["pieces"].split(" ")
        self.vocabulary = {piece: i for i, piece in enumerate(pieces)}
        self.weights, start = {}, 0
        for name, bits, rows, columns in given["tensors"]:
            end = start + rows * columns * bits // 8
            if bits == 16:
                tensor = from_half(self.data[start:end]).view(rows, columns)
            else:
                steps = unpack(self.data[start:end]).view(-1, GROUP)
                start, end = end, end + 2 * len(steps)
                scales = from_half(self.data[start:end]).view(-1, 1)
                tensor = (steps * scales).view(rows, columns)
            is_vector = rows == 1 and "token_type" not in name
            self.weights[name] = tensor[0] if is_vector else tensor
            start = end

    def split(self, text):
        """Split a sentence as typed into words, and each into its pieces."""
        words = WORD.findall(text)
        return words, [self._pieces_of_word(word) for word in words]

    def _pieces_of_word(self, word):
        apart = unicodedata.normalize("NFD", word.lower())
        plain = "".join(c for c in apart if unicodedata.category(c) != "Mn")
        return [p for part in PART_OF_WORD.findall(plain) for p in self._pieces(part)]

    def look(self, text):
        """Give the words, [CLS] and [SEP] around them, and all weights (4, h, t, t).

        Where a word was split, the rows of its pieces are averaged, the columns summed.
        """
        words, pieces = self.split(text)
        words, pieces = ["[CLS]", *words, "[SEP]"], [["[CLS]"], *pieces, ["[SEP]"]]
        weights = run_layers(self, [piece for of_word in pieces for piece in of_word])
        member = [i for i, of_word in enumerate(pieces) for _ in of_word]
        sums = torch.nn.functional.one_hot(torch.tensor(member)).float()  # (t, words)
        return words, (sums / sums.sum(dim=0)).T @ weights @ sums


@torch.no_grad()
def run_layers(model, tokens):
    """Give the weights of layers 0 to 3, of the small model or the whole one."""
    x, seen = model.embed(tokens), []
    for layer in range(WHOLE):
        weights, x = model.block(layer, x)
        seen.append(weights)
    last = f"encoder.layer.{WHOLE}.attention.self"
    return torch.stack([*seen, model.attention_weights(last, x)])  # (4, h, t, t)


# ---- what its heads do ----


def list_typed(name=None):
    """List (sentence, query, target) of one list of typed.txt, or all sentences."""
    if name:
        return sentences.read_labeled(name, "typed.txt")
    lists = ("brackets", "pronouns", "same word")
    return list(dict.fromkeys(s for name in lists for s, *_ in list_typed(name)))


def place(words, word):
    """Give the place of a word in lower case; ``word#2`` is its second occurrence."""
    word, _, count = word.partition("#")
    places = [i for i, other in enumerate(words) if other.lower() == word]
    return places[int(count or 1) - 1]


def find_largest(looks, head, sentence, query):
    """Give the words, and the place of a query's largest weight, [CLS] included."""
    words, weights = looks[sentence]
    layer, number = map(int, head.split("."))
    return words, weights[layer, number, place(words, query)].argmax().item()


def count_right(looks, head, examples):
    """Count the examples whose target has the largest weight of all: [right, of]."""
    right = 0
    for sentence, query, target in examples:
        words, largest = find_largest(looks, head, sentence, query)
        right += largest == place(words, target)
    return [right, len(examples)]


def count_word_before(looks):
    """Count the words that head 0.2 gives its largest weight to the word before."""
    right, count = 0, 0
    for words, weights in looks.values():
        largest = weights[0, 2].argmax(dim=1)[1:-1]  # of each word
        right += (largest == torch.arange(len(words) - 2)).sum().item()
        count += len(largest)
    return [right, count]


def measure(model):
    """Count how often heads do what is said of them; how often 1.3 and 3.1 agree."""
    looks = {sentence: model.look(sentence) for sentence in list_typed()}
    rates = {"0.2": count_word_before(looks)}
    for head, name in LISTS.items():
        rates[head] = count_right(looks, head, list_typed(name))
    same = sum(
        find_largest(looks, "1.3", s, query) == find_largest(looks, "3.1", s, query)
        for s, query, _ in list_typed("pronouns")
    )
    return rates | {"agree": [same, len(list_typed("pronouns"))]}


def compare(model, small):
    """Compare with the whole model on typed.txt, split into the small one's pieces.

    Returns:
        The mean difference of all weights, and in how many rows of the five heads
        another token has the largest weight, with the number of rows.
    """
    off, changed, rows = [], 0, 0
    for sentence in list_typed():
        _, pieces = small.split(sentence)
        tokens = ["[CLS]", *(p for of_word in pieces for p in of_word), "[SEP]"]
        both = [run_layers(one, tokens) for one in (model, small)]
        off.append((both[0] - both[1]).abs().mean().item())
        for head in ("0.2", *LISTS):
            layer, number = map(int, head.split("."))
            first, second = (weights[layer, number].argmax(dim=-1) for weights in both)
            changed += (first != second).sum().item()
            rows += len(tokens)
    return {
        "mean_difference": round(sum(off) / len(off), 4),
        "largest_on_another": [changed, rows],
    }
