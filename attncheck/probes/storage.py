"""Tests of what is stored: the state dict, devices, dtypes."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attncheck.collector import Collector, SkipTest
from attncheck.errors import CallFailed
from attncheck.numbers import changed
from attncheck.subject import Subject
from attncheck.trace import Arguments, tensors


def saved(subject: Subject, found: Collector) -> None:
    """Build a second instance, load the first one's state dict, compare outputs."""
    second, first = subject.variant(seed=1), subject.variant(seed=0)
    if second is None or first is None:
        raise SkipTest("this needs the class, not an instance")
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


def devices(subject: Subject, found: Collector) -> None:
    """Follow what would move to another device; move it where there is a GPU."""
    x, module = subject.tokens(), subject.copy()
    done = "Followed the module's tensors and the tokens to another device."
    try:
        subject(x, module, grad=True, mode=_Moved(module, x))
    except CallFailed as failure:
        if BEHIND not in str(failure):
            raise
        severity = "warning" if _by_design(subject, module) else None
        found.add("stays_behind", done, f"It raised {failure}.", severity)
        return
    if torch.cuda.is_available():
        _move(subject, "cpu" if subject.device.type == "cuda" else "cuda", found)


def _move(subject: Subject, device: str, found: Collector) -> None:
    try:
        module = subject.copy().to(device)
    except Exception as error:  # a GPU that is there and cannot be used, for example
        raise SkipTest(f"the weights can't be moved to {device}: {error}") from None
    done = f"Moved module and tokens with .to('{device}')."
    try:
        y = subject(subject.tokens().to(device), module)
    except CallFailed as failure:
        found.add("stays_behind", done, f"It raised {failure}.")
        return
    if y.device.type != device:
        found.add("stays_behind", done, f"The output is on {y.device.type}.")


def _by_design(subject: Subject, module: torch.nn.Module) -> bool:
    """Whether what stays need not move, or may be the reader's call's."""
    kind = type(subject.pristine)
    if "device" in inspect.signature(kind).parameters:
        return True  # one that is built on a device
    if any(_moves_itself(part) for part in subject.pristine.modules()):
        return True
    held = [one for part in module.modules() for one in vars(part).values()]
    keeps = any(isinstance(one, Tensor) and one.dim() > 0 for one in held)
    return subject.how.call is not None and not keeps


def _moves_itself(part: torch.nn.Module) -> bool:
    """Whether its forward, or what that calls, asks for a GPU, and moves there."""
    forward = type(part).forward
    names = [*getattr(getattr(forward, "__code__", None), "co_names", ())]
    called = [getattr(forward, "__globals__", {}).get(name) for name in names]
    for function in called:
        names += getattr(getattr(function, "__code__", None), "co_names", ())
    return not {"cuda", "is_cuda"}.isdisjoint(names)


class _Moved(TorchFunctionMode):
    """Refuses what would meet a tensor of another device, as a GPU would.

    The module's parameters and buffers and the tokens would have moved, and what is
    made of them. What is made of nothing has to be told a device; so has what the
    module holds as a plain tensor.

    Args:
        module: whose tensors move.
        x: the tokens.
    """

    # An index may lie on the CPU, and copying is what these are for.
    ALLOWED = ("to", "type_as", "copy_", "__getitem__", "__setitem__", "view_as",
               "expand_as", "__get__")  # fmt: skip

    def __init__(self, module: torch.nn.Module, x: Tensor) -> None:
        super().__init__()
        moved = [*module.parameters(), *module.buffers(), x]
        self.moved = {id(one): one for one in moved}  # held, so no id comes twice

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: Arguments = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        name, given = getattr(function, "__name__", ""), kwargs or {}
        met = list(tensors((args, given)))
        # A single number may be on any device.
        here = [id(one) in self.moved for one in met if one.dim() and one.numel()]
        if len({*here}) > 1 and name not in self.ALLOWED and "like" not in name:
            raise RuntimeError(f"`{name}` {BEHIND}")
        result = function(*args, **given)
        told = any(isinstance(one, torch.device) for one in (*args, *given.values()))
        first = met and id(met[0]) in self.moved
        if (
            told
            or first
            or (any(here) and name in ("to", "type_as", "copy_"))
            or (any(here) and all(here))
        ):
            self.moved |= {id(one): one for one in tensors((result,))}
        return result


BEHIND = "meets a tensor that stays on the CPU when the module moves"


def dtypes(subject: Subject, found: Collector) -> None:
    """Convert the module and call it, with ordinary and with large scores."""
    x = subject.tokens()
    if not subject(x).isfinite().all():
        raise SkipTest("the output isn't finite in float32 either")
    missing = []
    for dtype in (torch.float64, torch.bfloat16, torch.float16):
        name = str(dtype).removeprefix("torch.")
        done = f"Converted module and tokens to {name}."
        try:
            module = subject.copy().to(dtype)
            y = subject(x.to(dtype), module)
            large = subject(subject.tokens(size=6.0).to(dtype), module)
        except Exception as error:  # some devices have no float64
            if isinstance(error, CallFailed) and "not implemented" not in str(error):
                found.add("dtype_stays_behind", done, f"It raised {error}.")
            else:
                missing.append(name)
            continue
        if not (y.isfinite().all() and large.isfinite().all()):
            done += " Scores of about 30."
            found.add("overflows", done, "The output contains NaN or infinity.")
    if missing:
        subject.note(f"This PyTorch can't run the layer in {', '.join(missing)}.")
