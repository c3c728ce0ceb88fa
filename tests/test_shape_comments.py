"""Shape comments of all packages are true, at sizes of which no two are equal."""

import importlib
import inspect
from pathlib import Path

import pytest
import torch

from attention import MultiHeadAttention
from coding_attention.models.tiny_gpt import GPTConfig, TinyGPT
from tests.shape_comments import Reader, run, torn
from tools.mutants.places import CELL

ROOT = Path(__file__).resolve().parents[1]
T, D_IN, D_K, D_OUT, B = 7, 5, 3, 4, 2
WORDS = [f"word{i}" for i in range(T)]
INPUTS = torch.randn(T, D_IN).abs()
WEIGHTS = torch.randn(T, T).tril().softmax(dim=-1)
TOKENS = torch.randint(0, 6, (B, T))
PERIODS = torch.tensor([3, 4])


def project(width):
    return torch.randn(D_IN, width)


def gpt(cls=TinyGPT):
    return cls(GPTConfig(11, T, 6, num_heads=3, num_blocks=2)).eval()


def lab(name, **state):
    """A driver that computes a lab and draws what stands for it."""

    def drive(module):
        made = module[name](**state)
        made.compute()
        made.fallback()

    return drive


def seen_heads(module):
    weights = module["attention_weights"](gpt(), TOKENS)
    for score in ("previous_token_score", "induction_score", "sink_score"):
        module[score](weights, TOKENS)


def seen_induction(module):
    module["repeated_loss"](gpt(), TOKENS, PERIODS)
    module["guessing_loss"](TOKENS, PERIODS, PERIODS)


# By module: the sizes, and what runs its lines.
DRIVEN = {
    "attncheck.calling": (
        {"b": B, "t": T, "d": D_IN, "rows": 4, "columns": 4},
        lambda m: m["_as_image"](torch.randn(B, 16, D_IN), "bhwc"),
    ),
    "attncheck.layer": (
        {"t": T, "d": 4, "d_in": D_IN},
        lambda m: m["rotate"](torch.randn(B, 3, T, 4), m["Rope"](), torch.arange(T)),
    ),
    "attncheck.probes.meaning": (
        {"t": T, "d_in": D_IN},
        lambda m: m["_not_finite"](torch.randn(B, T, D_IN)),
    ),
    "attncheck.projections": (
        {"h": 2, "d_in": D_IN, "d_head": D_K, "d_out": 2 * D_K, "t": T},
        lambda m: (
            m["_plain"](torch.randn(D_IN, 2, D_K), D_IN),
            m["_plain"](torch.randn(2, D_IN, D_K), D_IN),
        ),
    ),
    "attncheck.turning": (
        {"t": T, "d": D_IN, "d_in": D_OUT},
        lambda m: m["_waves"](torch.diag_embed(INPUTS)),
    ),
    "attention.functional": (
        {"t": T, "t_q": T, "t_k": 6, "d_out": D_OUT, "d_head": 4, "d_in": D_IN},
        lambda m: (
            m["attend"](
                torch.randn(T, D_K), torch.randn(6, D_K), torch.randn(6, D_OUT)
            ),
            m["rotate"](torch.randn(T, 4), m["rotary_angles"](torch.arange(T), 4)),
        ),
    ),
    "attention.simple": (
        {"t": T, "d_in": D_IN},
        lambda m: m["simple_self_attention"](INPUTS),
    ),
    "coding_attention.figures.causal": (
        {"t": T, "d_in": D_IN},
        lambda m: m["dropped"](WEIGHTS, WEIGHTS > 0.1, WORDS, 0.5),
    ),
    "coding_attention.figures.flow": (
        {"t": T, "d_in": D_IN, "d_k": D_K, "d_out": D_OUT},
        lambda m: m["flow"](INPUTS, project(D_K), project(D_K), project(D_OUT)),
    ),
    "coding_attention.figures.multi_head": (
        {"t": T, "d_in": D_IN, "h": 2, "d_head": D_K, "d_out": 2 * D_K},
        lambda m: m["lanes"](INPUTS, MultiHeadAttention(D_IN, 2 * D_K, T, 0.0, 2)),
    ),
    "coding_attention.figures.one_path": (
        {"t": T, "d_in": D_IN},
        lambda m: m["one_path"](INPUTS, WORDS, 1),
    ),
    "coding_attention.figures.stacked": (
        {"t": T, "d_in": D_IN, "h": 2, "d_head": D_K, "d_out": 2 * D_K},
        lambda m: m["stacked_projection"](INPUTS, [project(D_K), project(D_K)]),
    ),
    "coding_attention.figures.trainable": (
        {"t": T, "d_in": D_IN, "d_k": D_K, "d_out": D_OUT},
        lambda m: m["one_query"](
            torch.randn(D_K), torch.randn(T, D_K), torch.randn(T, D_OUT), WORDS, "a"
        ),
    ),
    "coding_attention.gallery.pictures": (
        {"t": 6, "b": B, "d_in": 17},
        lambda m: (
            m["_reach"]("right"),
            m["_Predictor"](m["class_of"]("right"))(TOKENS[:, :1].expand(B, 6)),
        ),
    ),
    "coding_attention.labs.attention": (
        {"t": 6, "d_in": 3, "d_k": 2, "d_out": 2},
        lab("AttentionLab", trainable=True),
    ),
    "coding_attention.labs.bank": (
        {"t": 4, "d_in": D_IN},
        lab("BankLab", sentences=["the river bank flooded", "the bank approved loan"]),
    ),
    "coding_attention.labs.dropout": ({"t": 6, "d_in": 3}, lab("DropoutLab", draws=5)),
    "coding_attention.labs.head_split": (
        {"b": 2, "t": 5, "h": 3, "d_out": 12, "d_head": 4, "d_in": 7},
        lab("HeadSplitLab", batch=2, num_tokens=5, num_heads=3, d_out=12),
    ),
    "coding_attention.labs.look": ({"d_in": 768}, lab("LookLab")),
    "coding_attention.labs.mask": (
        {"t": 6, "d_in": 3, "d_k": 2, "d_out": 2},
        lab("MaskLab"),
    ),
    "coding_attention.labs.multi_head": (
        {"t": 6, "h": 2, "d_in": 3},
        lab("MultiHeadLab", num_heads=2),
    ),
    "coding_attention.models.heads": (
        {"b": B, "t": T, "h": 3, "d_head": 2, "d_in": 6},
        seen_heads,
    ),
    "coding_attention.models.induction": (
        {"b": B, "t": T, "d_in": D_IN, "vocab_size": 11},
        seen_induction,
    ),
    "coding_attention.models.real": (
        {"t": T, "words": T - 1},
        lambda m: m["join"]([*WORDS[:-1], "##s"], WEIGHTS),
    ),
    "coding_attention.models.repeats": (
        {"b": B, "t": T},
        lambda m: m["repeats"](B, T, 11, 2, 5, torch.Generator()),
    ),
    "coding_attention.models.seq2seq": (
        {"b": B, "t": T, "d_hidden": 6, "d_embed": D_IN},
        lambda m: m["Translator"](9, 8, D_IN, 6, attention=True)(TOKENS, 3),
    ),
    "coding_attention.models.tiny_gpt": (
        {"b": B, "t": T - 1, "d_model": 6, "vocab_size": 11},
        lambda m: m["generate"](gpt(m["TinyGPT"]), TOKENS[:, : T - 1], 1),
    ),
    "coding_attention.models.translation": (
        {"b": B, "t": 8, "d_in": D_IN},
        lambda m: m["grammar"](B, 8, torch.Generator()),
    ),
}


@pytest.mark.parametrize("name", DRIVEN)
def test_shape_comments_are_true(name):
    sizes, drive = DRIVEN[name]
    module = importlib.import_module(name)
    reader = Reader(name, sizes)
    space = {"__name__": name, "__package__": module.__package__,
             "__file__": module.__file__}  # fmt: skip
    drive(run(inspect.getsource(module), name, space, reader))
    assert not list(reader.wrong())


@pytest.mark.parametrize(
    ("comment", "why"),
    [
        ("# (t, d_k) @ (d_k, t) -> (t, t)", ""),
        ("# (d_in,) @ (d_in, d_out) -> (d_out,)", ""),
        ("# (b, h, t, d_head) @ (b, h, d_head, t) -> (b, h, t, t)", ""),
        ("# (t, d_k) @ (t, t) -> (t, t)", "d_k is multiplied with t"),
        ("# (t, d_k) @ (d_k, t) -> (t, d_k)", "(t, t) became (t, d_k)"),
        ("# (b, t_q, t_k)", ""),
        ("# (t, t_q, t_k)", "t_q and t_k are told apart, so t is neither"),
        ("# (t, t, d_out)", "t counts batches and tokens"),
        ("# (h, d_in, d_head)", ""),
        ("# (t, d_in), (b, t, d_in), (d_in, d_out), (h · d_head, d_in)", ""),
        ("# (1000, t) @ (t, d_in) -> (1000, d_in)", ""),
        ("# (…, t, d_in) @ (…, d_in, t) -> (…, t, t)", ""),
        ("# (d_in, h, d_head) -> (d_out, d_in)", ""),
    ],
)
def test_a_product_fits_whatever_the_sizes_are(comment, why):
    assert torn(comment) == why


@pytest.mark.parametrize(
    "shape",
    [
        "(b, d_in)", "(d_in, 2)", "(d_in, t)", "(1, d_in, t)", "(h, t, d_in)",
        "(b, d_in, 12)", "(b, h, d_in, d_head)", "(b, h, d_in + 1, d_head)",
        "(h · t, d_in)", "(t · d_head, d_in)", "(h · d_head, t)", "(…, d_in)",
        "(t, h, 1, d_head)", "(t, t_q, 1)", "(d_out, t).T", "(t, d_in).T",
    ],
)  # fmt: skip
def test_a_letter_that_is_not_in_its_place_is_told(shape):
    assert torn(f"# {shape}")


def sources():
    """The code of all packages, pages and exercises, by its file."""
    for room in ("attention", "attncheck", "coding_attention", "book"):
        for file in sorted((ROOT / room).rglob("*.*")):
            text = file.read_text("utf-8") if file.suffix in (".py", ".md") else ""
            cells = [text] if file.suffix == ".py" else CELL.findall(text)
            # What a reader might write, and be told about, is no promise of ours.
            if "/tasks/" in file.as_posix():
                cells = CELL.findall(text.partition("\n## Also tried")[0])
            yield from ((file.relative_to(ROOT), cell) for cell in cells)


def test_every_letter_is_in_its_place():
    for file, source in sources():
        told = [line.partition("#")[2] for line in source.split("\n") if "#" in line]
        wrong = [f"{text}: {torn(text)}" for text in told if torn(text)]
        assert not wrong, (file, wrong)
