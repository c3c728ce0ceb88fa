"""The module under test: calls it within limits and never lets it escape."""

import contextlib
import inspect
import re
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attncheck.arguments import is_pytorchs, usual_way
from attncheck.errors import CallFailed, CallHung, UnusableError, first_line, message
from attncheck.layer import Layer, document_of, memory_tokens
from attncheck.limits import TimedOutError, Worker
from attncheck.modules import duplicate, randomize
from attncheck.projections import Projections, find, from_adapter
from attncheck.reference import PLAIN
from attncheck.ways import Way

WINDOW = re.compile(r"((local|sliding|attn|attention)_?)?window(_size|_length|_len)?")
LOW = (torch.float16, torch.bfloat16)
MANY = 4  # sequences that a cache may have no room for


@dataclass(frozen=True)
class How:
    """How to call a module, and what it is meant to do.

    Attributes:
        call: function (module, x) for modules that are not called as module(x).
        layout: "btd" or "tbd".
        weights: function (module) for weights under unknown names.
        layer: what acts besides attention.
        one_by_one: give it each sequence (t, d_in) alone.
        way: what forward is given besides x, found out by trying.
        promised: whether whoever checks it says that it is causal by itself.
    """

    call: Callable[..., Any] | None = None
    layout: str = "btd"
    weights: Callable[[nn.Module], Any] | None = None
    layer: Layer = PLAIN
    one_by_one: bool = False
    way: Way | None = None
    promised: bool = False


class Subject:
    """A module with the sizes it was made for, and the way to call it.

    Args:
        module: the module; it is copied, never changed.
        worker: runs every call, within its time limit.
        causal: whether tokens may not see the future.
        sizes: d_in, context_length, num_heads as far as they are known.
        how: :class:`How` to call it and what it is meant to do.

    Attributes:
        pristine: a copy with weights drawn anew, so that mistakes show.
    """

    def __init__(
        self,
        module: nn.Module,
        worker: Worker,
        causal: bool,
        sizes: dict[str, Any],
        how: How,
    ) -> None:
        self.worker = worker
        self.causal = causal
        self.sizes = sizes
        self.how = how
        self.layer = how.layer
        self.layout = how.layout
        self.keeps_state = True  # until a probe has shown that it does not
        self.notes: list[str] = []
        self.given: dict[str, Any] = {}  # what its constructor was given
        self.takes_length = False  # whether that names the largest number of tokens
        self.replaced_memory: int | None = None  # the memory's token to replace
        self.limit: int | None = None  # the most tokens allowed
        self.fixed_length: int | None = None  # set where it takes no other number
        # False leaves the comparison out.
        self.reference: Callable[[nn.Module, Tensor], Any] | bool | None = None
        self.uneven: Subject | None = None  # the same with d_in ≠ d_out
        if any(p.is_meta for p in module.parameters()):
            raise UnusableError("its parameters are on 'meta' and have no values.")
        self.pristine = duplicate(module)
        floating = [p for p in self.pristine.parameters() if p.is_floating_point()]
        if floating and floating[0].dtype in LOW:
            self.pristine.float()
        randomize(self.pristine)
        self.device = floating[0].device if floating else torch.device("cpu")
        self.dtype = torch.float32
        if floating and floating[0].dtype == torch.float64:
            self.dtype = torch.float64
        self._shared: nn.Module | None = None
        self.variant: Callable[..., Subject | None]

    @property
    def way(self) -> Way | None:
        """How forward is called where nobody says; None where it can't be told."""
        with contextlib.suppress(UnusableError):
            return self.how.way or usual_way(self.pristine, self.layer, self.causal)
        return None

    def speaks_of(self, pattern: str) -> bool:
        """Whether a name in the module fits, of its class, parts or arguments."""
        module = self.pristine
        names = [type(module).__name__, *vars(module), *self.given]
        names += [name for name, _ in module.named_modules()]
        names += module.state_dict()
        names += [name for name, _ in module.named_buffers()]
        names += inspect.signature(module.forward).parameters
        return any(re.search(pattern, name.lower()) for name in names)

    @property
    def named_window(self) -> tuple[str, int]:
        """The name of a window that its constructor was given, and its size, or 0."""
        named = list(self.given.items())
        for config in self.given.values():  # an object with all settings
            named += getattr(config, "__dict__", {}).items()
        named += [(n, v) for n, v in vars(self.pristine).items() if n not in self.given]
        name, size = next(((n, v) for n, v in named if WINDOW.fullmatch(n)), ("", 0))
        # If its square is the number of tokens, it belongs to an image.
        known = type(size) is int and size > 0 and size**2 != self.fixed_length
        return name, size if known else 0

    @property
    def source(self) -> str:
        """The source of the class, or as much of it as there is."""
        text, kind = "", type(self.pristine)
        for part in (kind.forward, kind):  # some classes have no file
            with contextlib.suppress(OSError, TypeError):
                text = inspect.getsource(part)
        return text

    def says(self, pattern: re.Pattern[str]) -> bool:
        """Whether a comment or a docstring of the class fits."""
        told = re.findall(r'"""(.*?)"""|#([^\n]*)', self.source, re.DOTALL)
        return any(pattern.search(line) for pair in told for line in pair)

    def copy(self) -> nn.Module:
        """Return a copy of the module that a probe may change."""
        return duplicate(self.pristine)

    def tokens(
        self, b: int = 3, t: int = 6, seed: int = 0, size: float = 1.0
    ) -> Tensor:
        """Return random tokens (b, t, d_in), t no more than the layer allows."""
        generator = torch.Generator().manual_seed(seed)
        t = self.fixed_length or min(t, self.sizes.get("context_length") or t)
        x = torch.randn(b, t, self.sizes["d_in"], generator=generator) * size
        return x.to(self.device, self.dtype)

    def __call__(
        self,
        x: Tensor,
        module: nn.Module | None = None,
        train: bool = False,
        seed: int = 0,
        grad: bool = False,
        mode: AbstractContextManager[Any] | None = None,
        any_shape: bool = False,
    ) -> Tensor:
        """Return the module's output (b, t, width) for a copy of ``x``.

        Args:
            x: tokens (b, t, d_in).
            module: the module to call; None for one that nothing has disturbed.
            train: in training mode, not in eval().
            seed: for dropout.
            grad: keep the graph, and give ``x`` itself, not a copy.
            mode: a context to run in.
            any_shape: return the output even if it is not (b, t, width).

        Raises:
            CallFailed: it raised, or returned no (b, t, width).
            CallHung: it did not return in time.
        """
        if module is None:
            module = self._fresh()
        module.train(train)
        given = x if grad else x.detach().clone()

        def job() -> Any:
            seed_everything(seed, self.device)
            with torch.set_grad_enabled(grad), mode or contextlib.nullcontext():
                return self._forward(module, given)

        try:
            y = self._unwrap(run_guarded(self.worker, job, "forward_raises"))
        except CallFailed as failure:
            failure.many = len(x) > MANY
            raise
        if not any_shape and (y.dim() != 3 or y.shape[:2] != x.shape[:2]):
            text = f"the input has the shape {tuple(x.shape)}, the output has "
            # It may be meant to return one vector per sequence.
            pooled = y.dim() == 3 and y.shape[:2] == (len(x), 1)
            fewer = y.dim() == 3 and len(y) == len(x) and y.shape[1] < x.shape[1]
            pooled |= fewer and self.speaks_of("strid|pool|subsampl|downsampl|reduc")
            whole = y.dim() == 2 and len(y) == len(x)
            pooled |= whole and self.speaks_of("pool|readout")
            severity = "warning" if pooled else None
            raise CallFailed("wrong_shape", text + f"{tuple(y.shape)}", severity)
        return y

    def candidates(self) -> list[Projections]:
        """Return the readings of the weights, or an empty list.

        Raises:
            UnusableError: ``weights(module)`` failed.
        """
        if self.how.weights is not None:
            try:
                return [from_adapter(self.how.weights(self.pristine)).double()]
            except Exception as error:
                raise UnusableError(
                    f"weights(module) failed: {first_line(error)}"
                ) from error
        found = find(self.pristine, self.sizes.get("num_heads"), self.sizes.get("d_in"))
        return [projections.double() for projections in found]

    def note(self, text: str) -> None:
        """Keep a remark for the report, once."""
        if text not in self.notes:
            self.notes.append(text)

    def _fresh(self) -> nn.Module:
        """Return a module that no earlier call can have disturbed."""
        if self.keeps_state:
            return self.copy()
        if self._shared is None:
            self._shared = self.copy()
        return self._shared

    def _forward(self, module: nn.Module, x: Tensor) -> Any:
        if self.how.one_by_one:
            outputs = [self._plain_call(module, one) for one in x]
            if all(isinstance(y, Tensor) for y in outputs):
                return torch.stack(outputs)
            return outputs[0]
        x = x.transpose(0, 1) if self.layout == "tbd" else x
        return self._plain_call(module, x)

    def _plain_call(self, module: nn.Module, x: Tensor) -> Any:
        memory: Any = None
        if self.layer.memory:
            memory = self._memory(x.transpose(0, 1) if self.layout == "tbd" else x)
            memory = memory.transpose(0, 1) if self.layout == "tbd" else memory
        if self.how.call is None:
            way = self.how.way or usual_way(module, self.layer, self.causal)
            return self.call_by(way, module, x, memory)
        if self.layer.documents:
            b, t = self._counts(module, x)
            return self.how.call(module, x, document_of(t).expand(b, t).to(x.device))
        more = [memory] if self.layer.memory and _takes_three(self.how.call) else []
        return self.how.call(module, x, *more)

    def call_by(
        self,
        way: Way,
        module: nn.Module,
        x: Tensor,
        memory: Tensor | None = None,
        start: int = 0,
    ) -> Any:
        """Return what forward returns for x, as the layout has it, called in a way."""
        return way.call(module, x, self._counts(module, x), memory, start)

    def _counts(self, module: nn.Module, x: Tensor) -> tuple[int, int]:
        """Return the numbers of sequences and of tokens, as the module takes x."""
        first = self.layout == "tbd"
        if isinstance(module, nn.MultiheadAttention) and is_pytorchs(module):
            first = not module.batch_first
        t, b = x.shape[:2] if first else x.shape[1::-1]
        return b, t

    def _memory(self, x: Tensor) -> Tensor:
        assert self.layer.memory is not None, "only where there is a memory"
        width = self.how.way.memory_width if self.how.way else None
        memory = memory_tokens(self.layer.memory, x, width)
        if self.replaced_memory is not None:
            memory = memory.clone()
            memory[:, self.replaced_memory] = 0.5 - memory[:, self.replaced_memory]
        return memory

    def _unwrap(self, output: Any) -> Tensor:
        parts = output if isinstance(output, tuple | list) else fields_of(output)
        if parts and not isinstance(output, Tensor):
            # A cache may come before what was computed, as in ports from JAX.
            named = parts.items() if isinstance(parts, dict) else enumerate(parts, 1)
            held = [(name, one) for name, one in named if isinstance(one, Tensor)]
            name, output = held[0] if held else (1, next(iter(parts)))
            told = f"forward returned a {type(parts).__name__} of {len(parts)}"
            self.note(f"{told}; only {name!r} was tested.")
        if not isinstance(output, Tensor):
            text = f"it returned {type(output).__name__}, not a tensor"
            raise CallFailed("wrong_shape", text)
        if self.layout == "tbd" and output.dim() >= 2:
            output = output.transpose(0, 1)
        return output


def _takes_three(call: Callable[..., Any]) -> bool:
    """Whether a function takes (module, x, memory)."""
    try:
        inspect.signature(call).bind(None, None, None)
    except (TypeError, ValueError):
        return False
    return True


def fields_of(output: Any) -> dict[Any, Any]:
    """Return the fields of a result that is a dictionary or a dataclass."""
    if isinstance(output, Mapping):
        return dict(output)
    if is_dataclass(output) and not isinstance(output, type):
        return {field.name: getattr(output, field.name) for field in fields(output)}
    return {}


UNTRAINED = re.compile("being modified inplace|used in an in-place operation")


def run_guarded(worker: Worker, job: Callable[[], Any], mistake: str) -> Any:
    """Run a job of the reader's code; turn whatever goes wrong into a Failure.

    Raises:
        CallFailed: it raised.
        CallHung: it did not return in time.
        UnusableError: it wants other arguments.
    """
    try:
        return worker.call(job)
    except UnusableError:
        raise
    except TimedOutError:
        text = f"a call hadn't returned after {worker.seconds:g} s"
        raise CallHung("hangs", text) from None
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        mistake = "environment" if _is_environment(error) else mistake
        # It may run as long as nobody asks for gradients.
        mistake = "backward_raises" if UNTRAINED.search(message(error)) else mistake
        text = f"{type(error).__name__}: {first_line(error)}{_where(error)}"
        raise CallFailed(mistake, text) from None


def _is_environment(error: BaseException) -> bool:
    """Whether this PyTorch lacks what the code needs, which is no mistake of it."""
    text = message(error)
    words = ("Could not run 'aten::", "not implemented for '", "no kernel image",
             "No available kernel", "is not available on this", "not compiled with",
             "has no meta", "derivative for aten::", "Torch not compiled",
             "requires CUDA", "only supports CUDA", "Meta tensors")  # fmt: skip
    kinds = (NotImplementedError, RuntimeError, AssertionError)
    return isinstance(error, kinds) and any(word in text for word in words)


def _where(error: BaseException) -> str:
    """Return the line of the reader's code that raised, if there is one."""
    ours = str(Path(__file__).parent)
    library = str(Path(torch.__file__).parent)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((ours, library))
    ]
    if not frames:
        return ""
    line = f": `{frames[-1].line}`" if frames[-1].line else ""
    name = Path(frames[-1].filename).name
    return f" ({name}, line {frames[-1].lineno}{line})"


def seed_everything(seed: int, device: torch.device) -> None:
    """Seed the generator that dropout draws from, on the module's own device."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)


@contextlib.contextmanager
def keep_random_state(device: torch.device | None) -> Iterator[None]:
    """Give the global random state back as it was."""
    devices = [device] if device is not None and device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        yield
