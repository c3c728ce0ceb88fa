"""The lab of a trained model: its arithmetic in the page against PyTorch."""

import json
import os
from pathlib import Path

import torch

from coding_attention.labs.tiny_gpt import TinyGptLab
from coding_attention.models import induction
from coding_attention.models.tiny_gpt import GPTConfig, TinyGPT
from tests.coding_attention.labs.table import tiny_gpt as lab
from tests.coding_attention.labs.table import trained

HERE = Path(__file__).parent


def scores(one):
    """What ``compute`` turns into probabilities: without softmax, nothing is hidden."""
    from contextlib import ExitStack

    from coding_attention.models import heads

    model = one.model()
    with ExitStack() as stack, torch.no_grad():
        for head in one.silenced:
            place = divmod(head, one.sizes["num_heads"])
            stack.enter_context(heads.without_head(model, *place))
        return model(torch.tensor([one.tokens]))[0]


def cases():
    """Random sequences and silenced heads, for the trained model and random ones."""
    draws = torch.Generator().manual_seed(5)
    torch.manual_seed(5)
    made = [
        trained(),
        *(TinyGPT(GPTConfig(9, 12, 8, h, b)) for h, b in ((1, 3), (4, 1))),
    ]
    for model in made[1:]:  # large numbers reach the ends of GELU
        for parameter in model.parameters():
            parameter.data *= 3
    for model in made:
        config = model.config
        runs = []
        for n in range(6):
            count = int(
                torch.randint(1, config.context_length + 1, (1,), generator=draws)
            )
            tokens = torch.randint(
                config.vocab_size, (count,), generator=draws
            ).tolist()
            last = config.num_heads * config.num_blocks
            silenced = torch.randperm(last, generator=draws)[: n % 3].sort()[0].tolist()
            one = TinyGptLab(
                model, [str(i) for i in range(config.vocab_size)],
                tokens=tokens, silenced=silenced,
            )  # fmt: skip
            patterns = one.compute()[0].tolist()
            runs.append({
                "tokens": tokens, "silenced": silenced, "patterns": patterns,
                "scores": scores(one).tolist(),
            })  # fmt: skip
        state = {name: getattr(one, name) for name in ("weights", "shapes", "sizes")}
        yield {**state, "runs": runs}


def test_the_page_computes_what_pytorch_computes(node, tmp_path):
    """To 1e-9, in double precision on both sides, from the same rounded weights."""
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"models": list(cases())}), encoding="utf-8")
    result = node(
        "--test", HERE / "tiny_gpt.test.js", env={**os.environ, "CASES": str(path)}
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_rounding_the_weights_changes_next_to_nothing():
    tokens, periods = induction.draw(
        induction.Config(), 64, torch.Generator().manual_seed(7)
    )
    whole = induction.repeated_loss(trained(), tokens, periods)
    rounded = induction.repeated_loss(lab().model(), tokens, periods)
    assert abs(whole - rounded) < 1e-3  # of a loss of 0.02
    assert len(lab().weights) <= 50_000  # bytes in the page


def test_it_continues_the_sentence_and_forgets_without_the_first_head():
    at = lab().tokens[-1] + 1
    assert lab().compute()[1][-1].argmax() == at
    assert lab().compute()[1][-1, at] > 0.9
    assert lab(silenced=[0]).compute()[1][-1, at] < 0.5
