"""What PyTorch can do with each layer: one function per feature, tried for each class.

    python -m tests.attention.features

prints the table of the page "The package". A function compares numbers and returns
what has to be known to use the feature, nothing if there is nothing to know.
``test_features`` holds every cell of the page against what comes out.
"""

import copy
import importlib.util
import io
import pickle
import tempfile
import warnings
from pathlib import Path

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

from tests.attention.features_distributed import in_two_processes
from tests.attention.public import CAUSAL, LAYERS, arguments, build, tokens

CONTEXT = 6
FEATURES = {}
NEEDS = {"ONNX": ("onnxscript", "onnxruntime"), "safetensors": ("safetensors",)}


def feature(title):
    def keep(function):
        FEATURES[title] = function
        return function

    return keep


def layer_and_input(name, dtype=torch.float32):
    torch.manual_seed(0)
    layer = build(name, context_length=CONTEXT, bias=True).to(dtype).eval()
    return layer, tokens(2, 5, 3, dtype=dtype)


def same(result, expected, tolerance=1e-5):
    torch.testing.assert_close(
        result.float(), expected.float(), atol=tolerance, rtol=tolerance
    )


def unlike(layer):
    """Give a layer of the same class and sizes with all weights zero."""
    other = copy.deepcopy(layer)
    for parameter in other.parameters():
        torch.nn.init.zeros_(parameter)
    return other


@feature("copy.deepcopy")
def deep_copy(name):
    layer, x = layer_and_input(name)
    same(copy.deepcopy(layer)(x), layer(x), 0)


@feature("pickle, torch.save")
def pickled(name):
    layer, x = layer_and_input(name)
    same(pickle.loads(pickle.dumps(layer))(x), layer(x), 0)
    buffer = io.BytesIO()
    torch.save(layer.state_dict(), buffer)
    buffer.seek(0)
    other = unlike(layer)
    other.load_state_dict(torch.load(buffer, weights_only=True))
    same(other(x), layer(x), 0)


@feature("safetensors")
def safetensors(name):
    from safetensors.torch import load_file, save_file

    layer, x = layer_and_input(name)
    other = unlike(layer)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "layer.safetensors"
        save_file(layer.state_dict(), file)
        other.load_state_dict(load_file(file), strict=True)
    same(other(x), layer(x), 0)


@feature("meta device, then load")
def meta_device(name):
    layer, x = layer_and_input(name)
    with torch.device("meta"):
        empty = build(name, context_length=CONTEXT, bias=True).eval()
    state = {k: v for k, v in layer.state_dict().items() if not k.endswith("mask")}
    empty.load_state_dict(state, strict=False, assign=True)
    same(empty(x), layer(x), 0)


@feature("meta device, to_empty, reset_parameters")
def started_anew(name):
    with torch.device("meta"):
        layer = build(name, context_length=CONTEXT, bias=True)
    layer.to_empty(device="cpu")
    for parameter in layer.parameters():  # whatever the memory held
        torch.nn.init.constant_(parameter, torch.nan)
    for part in layer.modules():
        if hasattr(part, "reset_parameters"):
            part.reset_parameters()
    _, x = layer_and_input(name)
    assert layer(x).isfinite().all()
    if name in CAUSAL:
        same(layer(x[:, :3]), layer(x)[:, :3])


@feature("quantize_dynamic")
def quantized(name):
    from torch.ao.quantization import quantize_dynamic

    layer, x = layer_and_input(name)
    smaller = quantize_dynamic(layer, {torch.nn.Linear}, dtype=torch.qint8)
    apart = (smaller(x) - layer(x)).abs().max() / layer(x).abs().max()
    assert apart < 0.1
    return "" if apart > 0 else "no"  # its parameters are those of no nn.Linear


@feature("bfloat16, float16")
def half_precisions(name):
    exact, x = layer_and_input(name)
    for dtype in (torch.bfloat16, torch.float16):
        layer, _ = layer_and_input(name, dtype)
        out = layer(x.to(dtype))
        assert out.dtype == dtype
        same(out, exact(x), 3e-2)


@feature("autocast")
def autocast(name):
    layer, x = layer_and_input(name)
    with torch.autocast("cpu", torch.bfloat16):
        out = layer(x)
    assert out.dtype == torch.bfloat16
    same(out, layer(x), 3e-2)
    out.float().sum().backward()
    assert all(p.grad.isfinite().all() for p in layer.parameters())


@feature("torch.compile, one graph")
def compiled(name):
    torch.compiler.reset()
    layer, x = layer_and_input(name)
    same(torch.compile(layer, backend="aot_eager", fullgraph=True)(x), layer(x))


@feature("torch.export, dynamic t")
def exported(name):
    layer, x = layer_and_input(name)
    buffered = bool(list(layer.buffers()))
    longest = CONTEXT - 1 if buffered else CONTEXT
    t = torch.export.Dim("t", min=2, max=longest)
    program = torch.export.export(layer, (x,), dynamic_shapes=({1: t},)).module()
    for length in range(2, longest + 1):
        y = tokens(2, length, 3, dtype=torch.float32)
        same(program(y), layer(y))
    return "t < context_length" if buffered else ""


@feature("ONNX")
def onnx(name):
    import onnxruntime

    layer, x = layer_and_input(name)
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "layer.onnx")
        torch.onnx.export(layer, (x,), file, dynamo=True, verbose=False)
        session = onnxruntime.InferenceSession(file)
    (out,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    same(torch.from_numpy(out), layer(x))


@feature("torch.func.vmap")
def vmapped(name):
    layer, x = layer_and_input(name)
    batches = torch.stack([x, x.flip(1), x + 1])
    expected = torch.stack([layer(batch) for batch in batches])
    same(torch.func.vmap(layer)(batches), expected)


@feature("activation checkpointing")
def checkpointed(name):
    layer, x = layer_and_input(name)
    other = copy.deepcopy(layer)
    layer(x).square().sum().backward()
    checkpoint(other, x, use_reentrant=False).square().sum().backward()
    for a, b in zip(layer.parameters(), other.parameters(), strict=True):
        same(b.grad, a.grad)


def _with_math_if_needed(compute):
    """Compute; where the fused kernel cannot, compute in single steps."""
    try:
        compute()
    except (RuntimeError, NotImplementedError):
        with sdpa_kernel(SDPBackend.MATH):
            compute()
        return "SDPBackend.MATH"
    return ""


@feature("forward mode, torch.func.jvp")
def forward_mode(name):
    layer, x = layer_and_input(name, torch.float64)
    direction = tokens(2, 5, 3, seed=1)

    def compute():
        _, slope = torch.func.jvp(layer, (x,), (direction,))
        ahead, behind = layer(x + 1e-5 * direction), layer(x - 1e-5 * direction)
        same(slope, (ahead - behind) / 2e-5, 1e-6)

    return _with_math_if_needed(compute)


@feature("second derivatives")
def second_derivatives(name):
    layer, x = layer_and_input(name, torch.float64)

    def compute():
        assert torch.autograd.gradgradcheck(layer, x.clone().requires_grad_())

    return _with_math_if_needed(compute)


@feature("key padding mask")
def padding(name):
    layer, x = layer_and_input(name)
    taken = arguments_of_forward(layer)
    if "key_padding_mask" not in taken:
        return "no"
    hidden = torch.zeros(2, 5, dtype=torch.bool)
    hidden[:, 3:] = True
    same(layer(x, key_padding_mask=hidden)[:, :3], layer(x[:, :3]))
    return ""


@feature("causal=False")
def encoder(name):
    return "" if "causal" in arguments(name) or name not in CAUSAL else "no"


def arguments_of_forward(layer):
    import inspect

    return inspect.signature(layer.forward).parameters


@feature("DistributedDataParallel")
def data_parallel(name):
    return in_two_processes()["ddp"][name]


@feature("FSDP, fully_shard")
def sharded(name):
    return in_two_processes()["fsdp"][name]


@feature("distributed checkpoint (DCP), after fully_shard")
def distributed_checkpoint(name):
    return in_two_processes()["dcp"][name]


# What takes seconds: a test of its own, in another tier.
COSTLY = (
    "ONNX",
    "DistributedDataParallel",
    "FSDP, fully_shard",
    "distributed checkpoint (DCP), after fully_shard",
)


def missing(title):
    """Say which packages a feature needs that are not here."""
    return [n for n in NEEDS.get(title, ()) if importlib.util.find_spec(n) is None]


def cell(title, name):
    """Try a feature; give the words for the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        note = FEATURES[title](name)
    if note == "no":
        return "no"
    return f"yes, {note}" if note else "yes"


def table():
    rows = [["", *(f"`{name}`" for name in LAYERS)], ["---"] * (len(LAYERS) + 1)]
    for title in FEATURES:
        if missing(title):
            rows.append([title, *["not tried"] * len(LAYERS)])
        else:
            rows.append([title, *(cell(title, name) for name in LAYERS)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


if __name__ == "__main__":
    print(table())
