"""Nothing passes without a comparison, and nothing that was declared is excused."""

import json
import subprocess
import sys
from itertools import islice, product
from pathlib import Path

import pytest
import torch
from torch import nn

import attention
import attncheck
from attncheck.commandline import main
from attncheck.loading import attention_classes
from attncheck.mistakes import BASES, HEADER, compiled

ROOT = Path(__file__).parents[2]
LINES = {
    "scores": ["scores * {}", "scores.roll(1, 1) * {}"],
    "q": ["q * {}", "q + {}", "q.flip(-1) * {}", "q.roll(1, 2) * {}"],
    "k": ["k * {}", "k.flip(-1) * {}", "k.roll(1, 2) * {}"],
    "v": ["v * {}", "v.flip(1) * {}", "v + {}", "v.roll(1, 2) * {}"],
}
NUMBERS = (1.7, 0.5, 1.1)
LAYERS = ("rope", "window", "grouped", "sink", "alibi", "capped")


def base(name, *changes):
    source = HEADER + BASES[name][0]
    for right, wrong in changes:
        assert right in source
        source = source.replace(right, wrong)
    return source


def joined(*changes):
    source = """
class Attention(nn.Module):
    def __init__(self, d_model, n_heads, dropout):
        super().__init__()
        self.h = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.out = nn.Linear(d_model, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        b, t, c = x.shape
        parts = self.qkv(x).chunk(3, -1)
        q, k, v = (p.view(b, t, self.h, -1).transpose(1, 2) for p in parts)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        hidden = torch.ones(t, t, device=x.device).bool().triu(1)
        weights = self.drop(scores.masked_fill(hidden, -torch.inf).softmax(-1))
        return self.out((weights @ v).transpose(1, 2).reshape(b, t, c))
"""
    for right, wrong in changes:
        assert right in source
        source = source.replace(right, wrong)
    return compiled(HEADER + source, "joined.py")


def mutants():
    """Yield (name, source, options): declared layers with one line changed each."""
    for name, (what, forms) in product(LAYERS, LINES.items()):
        source = HEADER + BASES[name][0]
        at = "        context = F.scaled"
        if at not in source:
            at = "        weights = scores" if what == "scores" else "        i = torch"
        elif what == "scores":
            continue  # inside the fused function
        for form, number in product(forms, NUMBERS):
            line = f"        {what} = {form.format(number)}\n"
            changed = source.replace(at, line + at, 1)
            yield f"{name}: {line.strip()}", changed, BASES[name][2]


def compared(source, options):
    """Return the verdict of the comparison alone, which the mutants must not pass."""
    test = "same output as attention with these weights"
    probes = [p for p in attncheck.run.PROBES if p[0] == test]
    kept, attncheck.run.PROBES = attncheck.run.PROBES, probes
    try:
        return attncheck.check(compiled(source, "mutant.py"), **options).verdict
    finally:
        attncheck.run.PROBES = kept


MUTANTS = list(islice(mutants(), 0, None, 2))[:100]


def test_there_are_a_hundred_mutants_of_all_layers():
    assert len(MUTANTS) == 100
    assert {name.partition(":")[0] for name, _, _ in MUTANTS} == {*LAYERS}


@pytest.mark.parametrize("layer", LAYERS)
def test_no_mutant_of_a_declared_layer_passes(monkeypatch, layer):
    # Their names are another test's affair: no time goes into looking for one.
    import attncheck.run  # noqa: F401 (its list of probes is cut)

    monkeypatch.setattr("attncheck.parity.TRIES", 0)
    monkeypatch.setattr("attncheck.inferred.SECONDS", 0.0)
    of_this = [one for one in MUTANTS if one[0].startswith(f"{layer}:")]
    passed = [n for n, source, how in of_this if compared(source, how) == "passed"]
    assert passed == []


DECLARED = {
    "queries times 1.7, value heads reversed": (
        "rope", ("q, k = rotate(q), rotate(k)",
                 "q, k = rotate(q) * 1.7, rotate(k)\n        v = v.flip(1)")),
    "keys from position 1": (
        "rope", ("q, k = rotate(q), rotate(k)",
                 "q, k = rotate(q), rotate(F.pad(k, (0, 0, 1, 0)))[:, :, 1:]")),
    "scores times the root": (
        "window", ("/ self.d_head**0.5", "* self.d_head**0.5 * 2")),
}  # fmt: skip


@pytest.mark.parametrize(("name", "change"), DECLARED.values(), ids=DECLARED)
def test_a_declaration_excuses_nothing(name, change):
    report = attention.check(compiled(base(name, change), "x.py"), **BASES[name][2])
    assert report.verdict == "failed", str(report)


FOUND = {
    "a window": ("window", (), {"window": 3}),
    "another base": ("rope", (("base=10000.0", "base=500000.0"),),
                     {"rope": {"pairing": "halves", "base": 500000.0}}),
    "the other way": ("rope", (("angles.sin()", "-angles.sin()"),),
                      {"rope": {"pairing": "halves", "way": "other"}}),
}  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "options"), FOUND.values(), ids=FOUND)
def test_what_is_not_declared_is_proposed_and_passes_with_it(name, changes, options):
    cls = compiled(base(name, *changes), "x.py")
    declared = {"rope": "halves"} if name == "rope" else {}
    report = attention.check(cls, **declared)
    assert (report.verdict, report.proposal) == ("not judged", options), str(report)
    assert report.exit_status == 3
    assert eval(report.command, {"attention": attention, "Attention": cls}).ok


def test_scale_sinks_bias_and_zero_attention_can_be_declared():
    def changed(*changes):
        return compiled(base("multi_head", *changes), "x.py")

    scores = "scores / self.head_dim**0.5"
    for new, scale in (("scores", "none"), ("scores / self.head_dim", "1/d"),
                       ("scores * 0.31", 0.31)):  # fmt: skip
        cls = changed((scores, new))
        assert attention.check(cls, scale=scale).ok, scale
        assert not attention.check(cls).ok, scale
    bias = f"({scores} + (torch.arange(t, device=x.device) / 9).to(x.dtype))"
    cls = changed((scores, bias))
    given = {"bias": lambda module, t: torch.arange(t) / 9}
    assert attention.check(cls, **given).ok
    assert attention.check(cls).verdict != "passed"
    assert attention.check(
        nn.MultiheadAttention, causal=False, layout="tbd", add_zero_attn=True
    ).ok


def test_joined_projections_need_their_gradients_and_one_dropout():
    assert attention.check(joined()).ok
    root = "q @ k.mT / q.shape[-1] ** 0.5"
    cut = attention.check(joined((root, f"({root}).detach()")))
    assert [f.mistake for f in cut.findings] == ["gradient_missing"], str(cut)
    assert "of qkv.weight" in cut.findings[0].seen
    twice = joined(("self.drop(scores", "self.drop(self.drop(scores"),
                   ("softmax(-1))", "softmax(-1)))"))  # fmt: skip
    assert [f.mistake for f in attention.check(twice).findings] == [
        "dropout_rate_ignored"
    ]


CONFIG = """from dataclasses import dataclass

@dataclass
class GPTConfig:
    n_head: int = 12
    n_embd: int = 768
    dropout: float = 0.0

"""


@pytest.mark.parametrize("dataclass", [True, False])
def test_a_config_is_built_by_its_names(tmp_path, capsys, dataclass):
    text = base("rope", ("d_model, n_heads):", "config, layer_idx):"),
                ("        self.n_heads, ", "        d_model, n_heads = config.n_embd, "
                 "config.n_head\n        self.n_heads, "))  # fmt: skip
    path = tmp_path / "attention.py"
    path.write_text((CONFIG if dataclass else "") + text)
    assert main([str(path), "--rope", "halves"]) == 0, capsys.readouterr()
    sizes = ["--config", "n_embd=24", "--config", "n_head=3"]
    again = [str(path), "--rope", "halves", "--set", "layer_idx=0", *sizes]
    assert main(again) == 0, capsys.readouterr()
    assert "n_embd=24" in capsys.readouterr().out


def test_all_that_is_needed_is_asked_for_at_once(tmp_path, capsys):
    path = tmp_path / "mine.py"
    path.write_text(base("rope", ("n_heads):", "n_heads, kinds: list, others: dict):")))
    assert main([str(path)]) == 2
    text = " ".join(capsys.readouterr().err.split())
    assert "--set kinds=… --set others=…" in text


def test_set_takes_names_that_the_check_has_too(tmp_path, capsys):
    path = tmp_path / "mine.py"
    before = "        self.n_heads, "
    source = base(
        "rope",
        ("n_heads):", "n_heads, causal=True, scale=1):"),
        ("is_causal=True", "is_causal=self.causal"),
        (before, f"        self.causal = causal\n{before}"),
    )
    path.write_text(source)
    command = [str(path), "--rope", "halves", "--set", "scale=2"]
    assert main([*command, "--set", "causal=False"]) == 0, capsys.readouterr()
    assert main([*command, "--set", "causal=True"]) == 0, capsys.readouterr()


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("class Heads(nn.Module): ...", ["Heads"]),
        ("class Heads(nn.Module): ...\nclass Other(nn.Module): ...", []),
        ("class Heads(nn.Module): ...\nclass SelfAttn(Heads): ...", ["SelfAttn"]),
        ("class Attention: ...", []),
    ],
)
def test_the_only_module_of_a_file_is_taken_for_attention(code, found, tmp_path):
    (tmp_path / "a.py").write_text(f"from torch import nn\n{code}\n")
    assert attention_classes(tmp_path / "a.py") == found


def test_files_folders_and_packages(tmp_path, capsys, monkeypatch):
    package = tmp_path / "model"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "sizes.py").write_text("HEADS = 4\n")
    (package / "attention.py").write_text(
        "from model.sizes import HEADS\nfrom .sizes import HEADS\n" + base("rope")
    )
    (package / "other.py").write_text("x = 1\n")
    assert attention_classes(package / "attention.py") == ["Attention"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(
        '[tool.attncheck]\nrope = "halves"\n'
        '[tool.attncheck.classes."model/attention.py:Attention"]\nn_heads = 2\n'
    )
    with pytest.raises(SystemExit):
        main(["model"])  # a setting that is no option
    assert "n_heads" in capsys.readouterr().err
    (tmp_path / "pyproject.toml").write_text('[tool.attncheck]\nrope = "halves"\n')
    assert main(["model", "model/attention.py", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["verdict"] for one in told["reports"]] == ["passed", "passed"]


def test_help_versions_and_explanations_come_without_torch():
    code = (
        "import sys\nfrom attncheck.commandline import main\n"
        "assert main(['--explain', 'ATT307']) == 0\n"
        "assert main(['--explain', 'ATT000']) == 2\n"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "The scores aren't scaled" in done.stdout
    assert "There's no mistake ATT000" in done.stderr


def test_a_reader_that_stops_reading_sees_no_traceback(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(base("rope"))
    command = f"{sys.executable} -m attncheck {path} --rope | true"
    done = subprocess.run(command, shell=True, cwd=ROOT, check=False,
                          capture_output=True, text=True)  # fmt: skip
    assert done.stderr == ""


def test_assert_attention_raises_unless_it_passes():
    attncheck.assert_attention(compiled(base("rope"), "x.py"), rope="halves")
    for wrong in (compiled(base("rope", ("rotate(q), ", "q, ")), "x.py"), nn.Identity):
        with pytest.raises(AssertionError):
            attncheck.assert_attention(wrong, rope="halves")


STAGES = {
    "scores": "        q = q * 1.7\n        i = torch",
    "mix": "        v = v.flip(1)\n        i = torch",
}


@pytest.mark.parametrize(("stage", "start"), STAGES.items(), ids=STAGES)
def test_what_has_no_name_gets_its_stage(monkeypatch, stage, start):
    monkeypatch.setattr("attncheck.parity.TRIES", 0)
    monkeypatch.setattr("attncheck.inferred.SECONDS", 0.0)
    softmax = "scores.softmax(dim=-1)"
    rolled = softmax if stage != "scores" else f"scores.roll(1, 1){softmax[6:]}"
    changes = (("        i = torch", start), (softmax, rolled))
    report = attention.check(compiled(base("window", *changes), "x.py"), window=3)
    assert report.verdict == "failed"
    seen = " ".join(finding.seen for finding in report.findings)
    assert f"The first stage that differs: {stage}." in seen, str(report)


HIDDEN = "hidden = torch.ones(t, t, device=x.device).bool().triu(1)"
STRICT = [
    (HIDDEN, HIDDEN.replace("triu(1)", "triu()")),
    ("scores.masked_fill", "strict * scores.masked_fill"),
    ("hidden, -torch.inf)", "hidden, -1e9)"),
    (".softmax(-1))", ".softmax(-1)) * seen"),
    ("scores = q", "strict, seen = 1, (torch.arange(t) > 0)[:, None].to(x)\n"
                   "        scores = q"),
]  # fmt: skip
MEANT = {
    "muP": ([("** 0.5", "# as in muP")], {"scale": "1/d"}),
    "a strict mask": (STRICT, {"exclusive": True}),
}


@pytest.mark.parametrize("name", MEANT)
def test_a_departure_that_the_class_speaks_of_is_asked_about(name):
    changes, option = MEANT[name]
    report = attention.check(joined(*changes))
    assert report.verdict == "not judged"
    assert report.proposal == option
    assert attention.check(joined(*changes), **option).verdict == "passed"


@pytest.mark.parametrize("name", MEANT)
def test_it_is_a_mistake_where_nothing_speaks_of_it(name):
    words = [("as in muP", ""), ("strict", "once")]
    silent = [
        (right, wrong.replace(*words[0]).replace(*words[1]))
        for right, wrong in MEANT[name][0]
    ]
    assert attention.check(joined(*silent)).verdict == "failed"


def test_a_layer_where_no_token_sees_itself_can_be_declared():
    change = (HIDDEN, "hidden = torch.eye(t, device=x.device).bool()")
    first = (".softmax(-1))", ".softmax(-1).nan_to_num(0.0))")  # of one token alone
    layer, options = joined(change, first), {"causal": False, "exclusive": True}
    assert attention.check(layer, **options).verdict == "passed"
    wrong = joined((HIDDEN, HIDDEN.replace(".triu(1)", " & False")))
    assert attention.check(wrong, **options).verdict == "failed"


def test_a_weight_may_be_held_as_its_direction_and_size():
    for wrapper in ("weight_norm", "parametrizations.weight_norm"):
        made = f"self.qkv = nn.utils.{wrapper}(nn.Linear(d_model, 3 * d_model))"
        change = ("self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)", made)
        assert attention.check(joined(change)).verdict == "passed"
