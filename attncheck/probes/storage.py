"""Tests of what is stored: the state dict, devices, dtypes."""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from attncheck.calling import makes_positions
from attncheck.collector import Collector, SkipTest
from attncheck.numbers import changed
from attncheck.probes.training import BIAS_OF
from attncheck.subject import CallFailed, Subject
from attncheck.trace import Arguments, Watch

# A softmax that is computed in float32, for lower precisions, and not cast back.
FINE = re.compile(r"softmax(?!.*(\.to\(|type_as)).*(torch\.float(32)?\b|\.float\(\))")
FAR = 320  # tokens; bfloat16 counts to 256 by ones

# Names of what is learned, and of what is drawn once on purpose.
LEARNED = re.compile(r"rel|pos|bias|table|weight|query|key|value|^w_?[qkvo]$")
FIXED = re.compile(r"rand|feature|fourier|proj|hash|codebook|freq")


def saved(subject: Subject, found: Collector) -> None:
    """Build a second instance, load the first one's state dict, compare outputs."""
    second = subject.variant(seed=1)
    if second is None:
        raise SkipTest("this needs the class, not an instance")
    first = subject.variant(seed=0)
    assert first is not None, "it was built with another seed"
    _random_buffers(first, second, found)
    _fixed_sinks(first, found)
    for name, part in first.pristine.named_modules():
        for own, held in vars(part).items():
            bias = BIAS_OF.fullmatch(own.replace("_", ""))
            if isinstance(held, torch.Tensor) and (
                bias or (held.requires_grad and held.is_leaf)
            ):
                done = "Looked for tensors that need a gradient, and for biases."
                seen = f"{f'{name}.{own}'.strip('.')} is a tensor, and no parameter."
                found.add("weights_not_saved", done, seen)
                return
    if unseen := _in_lists(first.pristine):
        done = "Looked for layers that the module doesn't know."
        seen = f"{unseen} holds layers whose parameters it doesn't have."
        found.add("weights_not_saved", done, seen)
        return
    done = "Loaded the state dict into a second instance, and compared outputs."
    try:
        second.pristine.load_state_dict(first.pristine.state_dict())
    except RuntimeError as error:
        found.add("weights_not_saved", done, f"Loading failed: {error}.")
        return
    x = first.tokens()
    if changed(first(x), second(x)):
        found.add("weights_not_saved", done, "The two instances' outputs differ.")


def _in_lists(module: torch.nn.Module) -> str:
    """Return the name of a list or dictionary with layers of its own, or ""."""
    known = {id(p) for p in module.parameters()}
    owned = [pair for part in module.modules() for pair in vars(part).items()]
    for name, held in owned:
        if name.startswith("_") or not isinstance(held, dict | list | tuple):
            continue
        for part in held.values() if isinstance(held, dict) else held:
            own = part.parameters() if isinstance(part, torch.nn.Module) else ()
            if any(p.requires_grad and id(p) not in known for p in own):
                return name
    return ""


def _random_buffers(first: Subject, second: Subject, found: Collector) -> None:
    """Look for tables and weights that start at random, act, and are no parameters."""
    others = dict(second.pristine.named_buffers())
    for name, held in first.pristine.named_buffers():
        plain = name.rpartition(".")[2].lower()
        other = others.get(name, held)
        if not LEARNED.search(plain) or FIXED.search(plain) or held.dim() < 2:
            continue
        if not held.is_floating_point() or other.shape != held.shape:
            continue
        if not changed(held, other):
            continue  # it is computed
        module = first.copy()
        with torch.no_grad():
            dict(module.named_buffers())[name].copy_(other)
        x = first.tokens()
        if changed(first(x), first(x, module)):
            done = "Built two instances, and compared their buffers."
            seen = f"The buffer {name} holds random numbers that change the output."
            found.add("gradient_missing", done, seen, stage="storage")


def _fixed_sinks(subject: Subject, found: Collector) -> None:
    """Look for an extra score of each head that acts, and that nothing can train."""
    heads = subject.sizes.get("num_heads") or 1
    for name, held in subject.pristine.named_buffers():
        sinks = "sink" in name.rpartition(".")[2].lower() and held.numel() == heads > 1
        if not sinks or not held.is_floating_point():
            continue
        module, x = subject.copy(), subject.tokens()
        with torch.no_grad():
            dict(module.named_buffers())[name].add_(1.0)
        if changed(subject(x), subject(x, module)):
            done = "Looked for what holds a number for each head."
            seen = f"{name} acts on the output, and is a buffer, so it never learns."
            found.add("gradient_missing", done, seen, stage="storage")


def load() -> None:
    """Have PyTorch load what it needs for its device without memory: a second.

    That is more than a call of the reader's class may take. And of several classes,
    each checked in a process of its own, each would load it.
    """
    torch.ones(1, device="meta").neg()


def devices(subject: Subject, found: Collector) -> None:
    """Move the module to another device: PyTorch's device without memory, or a GPU."""
    load()
    targets = ["meta"]
    if torch.cuda.is_available():
        targets.append("cpu" if subject.device.type == "cuda" else "cuda")
    for device in targets:
        _move(subject, device, found)


def _move(subject: Subject, device: str, found: Collector) -> None:
    done = f"Moved module and tokens with .to('{device}')."
    try:
        module = subject.copy().to(device)
    except Exception as error:  # a GPU that is there and cannot be used, for example
        raise SkipTest(f"the weights can't be moved to {device}: {error}") from None
    try:
        y = subject(subject.tokens().to(device), module, mode=OneDevice())
    except CallFailed as failure:
        if _about_devices(failure):
            # One that is built on a device need not move.
            kind = type(subject.pristine)
            told = "device" in inspect.signature(kind).parameters
            # Nor one whose file names the device once for all.
            told |= "device" in getattr(kind.forward, "__globals__", {})
            told |= any(_moves_itself(part) for part in subject.pristine.modules())
            # Nor may what stays be the class's: the reader's call made some of it.
            told |= subject.how.call is not None and not _keeps_tensors(module)
            severity = "warning" if told else None
            found.add("stays_behind", done, f"It raised {failure}.", severity)
            return
        if device == "meta":
            raise SkipTest("forward looks at values, and 'meta' has none") from None
        raise
    if y.device.type != device:
        found.add("stays_behind", done, f"The output is on {y.device.type}.")


def _keeps_tensors(module: torch.nn.Module) -> bool:
    """Whether the module has tensors that it moves nowhere."""
    held = [one for part in module.modules() for one in vars(part).values()]
    return any(isinstance(one, torch.Tensor) and one.dim() > 0 for one in held)


def _moves_itself(part: torch.nn.Module) -> bool:
    """Whether its forward, or what that calls, asks for a GPU, and moves there."""
    forward = type(part).forward
    names = [*getattr(getattr(forward, "__code__", None), "co_names", ())]
    called = [getattr(forward, "__globals__", {}).get(name) for name in names]
    for function in called:
        names += getattr(getattr(function, "__code__", None), "co_names", ())
    return not {"cuda", "is_cuda"}.isdisjoint(names)


class OneDevice(TorchFunctionMode):
    """Refuses operations on tensors of two devices, as a GPU would.

    PyTorch itself lets some of them pass on its device "meta".
    """

    # Copying is what these are for, and an index may lie on the CPU.
    ALLOWED = ("to", "type_as", "copy_", "__getitem__", "__setitem__", "view_as",
               "expand_as")  # fmt: skip

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: Arguments = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        name = getattr(function, "__name__", "")
        devices = {tensor.device.type for tensor in _tensors((args, kwargs))}
        if len(devices) > 1 and name not in self.ALLOWED and "like" not in name:
            both = " and ".join(sorted(devices))
            raise RuntimeError(
                f"`{name}` needs all tensors on the same device, but got {both}"
            )
        return function(*args, **(kwargs or {}))


def _tensors(nested: object) -> Iterator[torch.Tensor]:
    """Yield the tensors with numbers and an axis; a lone number may lie anywhere."""
    if isinstance(nested, torch.Tensor):
        if nested.dim() > 0 and nested.numel():
            yield nested
    elif isinstance(nested, dict):
        yield from _tensors(list(nested.values()))
    elif isinstance(nested, list | tuple):
        for entry in nested:
            yield from _tensors(entry)


def _about_devices(failure: CallFailed) -> bool:
    # What PyTorch alone refuses on "meta", such as an index on the CPU, a GPU takes.
    text = str(failure)
    return "needs all tensors on the same device" in text or "cuda" in text


def precision(subject: Subject, found: Collector) -> None:
    """Compute in float64 what was computed in float32: the gap must be rounding."""
    x = subject.tokens(b=2)
    y = subject(x)
    if subject.dtype != torch.float32 or not y.isfinite().all():
        raise SkipTest("the layer isn't in float32, or isn't finite there")
    try:
        fine = subject(x.double(), subject.copy().double())
    except CallFailed:
        if found.rounded:
            _without_rounding(subject, x, y, found)
        raise SkipTest("it doesn't run in float64") from None
    scale = fine.abs().max().clamp_min(1e-12)
    gap = ((y - fine).abs().max() / scale).item()
    # Rounding to float16 leaves 1e-4 to 1e-3, to bfloat16 eight times as much.
    # One that equals the reference, which is in float64, isn't rounded.
    equal = found.compared and not found.causes and "differs" not in found.found
    equal = equal and not found.rounded
    if gap > 1e-4 and not equal:
        done = "Compared float32 with float64, for the same tokens and weights."
        seen = (
            f"The outputs differ by {gap:.1g} of the largest, far more than rounding."
        )
        found.add("low_precision", done, seen)
        return
    _rounded(subject, x.double(), fine, scale, found)
    if found.rounded and "low_precision" not in found.found:
        _without_rounding(subject, x, y, found)  # as a table that both dtypes round


def _without_rounding(
    subject: Subject, x: torch.Tensor, y: torch.Tensor, found: Collector
) -> None:
    """Compare with what it computes where its steps in lower precision are left out."""
    subject.unrounded = True
    try:
        fine = subject(x)
    finally:
        subject.unrounded = False
    if changed(fine, y, 2e-5):
        done = "Compared with what it computes if nothing is cast to fewer digits."
        found.add("low_precision", done, "The outputs differ.")


def _rounded(
    subject: Subject,
    x: torch.Tensor,
    fine: torch.Tensor,
    scale: torch.Tensor,
    found: Collector,
) -> None:
    """Shift the input by less than lower precision can see."""
    step = 2e-5  # float32 sees it, float16 and bfloat16 do not
    direction = subject.tokens(b=2, seed=21).double()
    module = subject.copy().double()
    moved = subject(x + step * direction, module)
    more = subject(x + 2 * step * direction, subject.copy().double())
    first, second = moved - fine, more - fine
    if second.abs().max() < 1e-12 * scale:
        return  # the output does not change with the input at all
    # Smooth, the second shift is twice the first; with few digits it jumps.
    if (second - 2 * first).abs().max() > 0.2 * second.abs().max():
        done = "In float64, shifted tokens by 2 and by 4 parts in 100,000."
        found.add("low_precision", done, "The output doesn't change in proportion.")


def dtypes(subject: Subject, found: Collector) -> None:
    """Convert the module and call it, with ordinary and with large scores."""
    x = subject.tokens()
    if not subject(x).isfinite().all():
        raise SkipTest("the output isn't finite in float32 either")
    missing = []
    for dtype in (torch.float64, torch.bfloat16, torch.float16):
        name = str(dtype).removeprefix("torch.")
        try:
            module = subject.copy().to(dtype)
        except Exception:  # some devices have no float64
            missing.append(name)
            continue
        done = f"Converted module and tokens to {name}."
        watch = Watch(module)
        try:
            y = subject(x.to(dtype), module, mode=watch)
            large = subject(subject.tokens(size=6.0).to(dtype), module)
        except CallFailed as failure:
            if "not implemented" in str(failure):
                missing.append(name)
            elif "without overflow" in str(failure):
                found.add("fill_overflows", done, f"It raised {failure}.")
            else:
                last = [line for _, made, line in watch.seen.softmaxes
                        if made.dtype == torch.float32 != dtype and line]  # fmt: skip
                own = bool(last and FINE.search(last[-1][2]))
                more = {"severity": "error", "stage": "weights"} if own else {}
                found.add("dtype_stays_behind", done, f"It raised {failure}.", **more)
            continue
        if y.dtype != dtype:
            found.add("dtype_changes", done, f"The output is {y.dtype}.")
        if not (y.isfinite().all() and large.isfinite().all()):
            done += " Scores of about 30."
            found.add("overflows", done, "The output contains NaN or infinity.")
    if missing:
        subject.note(f"This PyTorch can't run the layer in {', '.join(missing)}.")
    _rounded_positions(subject, found)


class _Angles(TorchFunctionMode):
    """Keeps what sines and cosines are taken of."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[torch.Tensor] = []

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: Arguments = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        name = getattr(function, "__name__", "").strip("_")
        if name in ("cos", "sin", "polar") and isinstance(args[-1], torch.Tensor):
            self.taken.append(args[-1].detach().double())
        return function(*args, **(kwargs or {}))


def _rounded_positions(subject: Subject, found: Collector) -> None:
    """Compare the angles of far positions in bfloat16, as in float32.

    Buffers stay as they are: who converts a module can leave them out.
    """
    way, call = subject.how.way, subject.how.call
    if (way is not None and way.turns) or makes_positions(call):
        return  # the table that it's given isn't its own
    subject = subject.variant(context_length=FAR) or subject
    few, many = subject.tokens(b=1), subject.tokens(b=1, t=FAR)
    if many.shape[1] < FAR or subject.dtype != torch.float32 or subject.layer.memory:
        return
    kept = []
    for dtype in (torch.float32, torch.bfloat16):
        module, angles = subject.copy(), _Angles()
        for parameter in module.parameters():
            parameter.data = parameter.data.to(dtype)
        try:
            subject(few.to(dtype), module, mode=angles)
            if not angles.taken:
                return
            angles.taken.clear()
            subject(many.to(dtype), module, mode=angles)
        except CallFailed:
            return
        kept.append(angles.taken)
    for fine, rough in zip(*kept, strict=False):
        if fine.shape == rough.shape and (fine - rough).abs().max() > 0.5:
            done = f"Compared angles of {FAR} positions in bfloat16 and in float32."
            off = (fine - rough).abs().max().item()
            text = f"They differ by up to {off:.2g} radians."
            alike = _neighbors_alike(fine, rough)
            if alike:  # no text of this length can be told in order
                text += f" Tokens {alike} and {alike + 1} get the same angles: count "
                text += "positions in float32 or int64, whatever x is in."
            # Angles that are only less exact are right in float32, and near in others.
            found.add("low_precision", done, text, "error" if alike else "warning")
            return


def _neighbors_alike(fine: torch.Tensor, rough: torch.Tensor) -> int:
    """Return the first token whose angles are the next one's in rough numbers alone."""
    if FAR not in fine.shape:
        return 0
    axis = fine.shape.index(FAR)
    both = [one.movedim(axis, 0).flatten(1) for one in (fine, rough)]
    apart, same = ((one[1:] == one[:-1]).all(dim=1) for one in both)
    alike = (same & ~apart).nonzero()
    return int(alike[0]) if len(alike) else 0
