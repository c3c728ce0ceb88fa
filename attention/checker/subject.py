"""The module under test: calls it within limits and never lets it escape."""

import contextlib
import inspect
import traceback
from pathlib import Path

import torch
from torch import nn

from attention.checker.build import (
    FunctionModule,
    UnusableError,
    duplicate,
    first_line,
    randomise,
)
from attention.checker.limits import TimedOutError, is_out_of_memory
from attention.checker.projections import find, from_adapter


class Failure(Exception):  # noqa: N818 (an outcome that probes look at)
    """The module did not do what was asked.

    Attributes:
        mistake: the name of the mistake that this is.
    """

    def __init__(self, mistake, text):
        super().__init__(text)
        self.mistake = mistake


class CallFailed(Failure):
    """It raised, or returned something else than (b, t, width)."""


class CallHung(Failure):
    """It did not return. Its thread is lost, so no test can go on."""


class Subject:
    """A module with the sizes it was made for, and the way to call it.

    Args:
        module: the module; it is copied, never changed.
        worker: runs every call, within its time limit.
        causal: whether tokens may not see the future.
        sizes: d_in, context_length, num_heads as far as they are known.
        call: function (module, x) for modules that are not called as module(x).
        layout: "btd" or "tbd".
        weights: function (module) for weights under unknown names.
    """

    def __init__(self, module, worker, causal, sizes, call, layout, weights):
        self.worker = worker
        self.causal = causal
        self.sizes = sizes
        self.layout = layout
        self.keeps_state = True  # until a probe has shown that it does not
        self.notes = []
        self.limit = None  # the most tokens allowed
        self.fixed_length = None  # set where it takes no other number of tokens
        self.reference = None
        self.skip_reference = False
        self.uneven = None  # the same with d_in ≠ d_out
        self._call = call
        self._weights = weights
        if any(p.is_meta for p in module.parameters()):
            raise UnusableError("its parameters are on 'meta', without values.")
        self.pristine = duplicate(module)
        floating = [p for p in self.pristine.parameters() if p.is_floating_point()]
        if floating and floating[0].dtype in (torch.float16, torch.bfloat16):
            self.pristine.float()
        randomise(self.pristine)
        self.device = floating[0].device if floating else torch.device("cpu")
        self.dtype = torch.float32
        if floating and floating[0].dtype == torch.float64:
            self.dtype = torch.float64
        self._shared = None

    def copy(self):
        """Return a copy of the module that a probe may change."""
        return duplicate(self.pristine)

    def tokens(self, b=3, t=6, seed=0, size=1.0):
        """Return random tokens (b, t, d_in), t no more than the layer allows."""
        generator = torch.Generator().manual_seed(seed)
        t = self.fixed_length or min(t, self.sizes.get("context_length") or t)
        x = torch.randn(b, t, self.sizes["d_in"], generator=generator) * size
        return x.to(self.device, self.dtype)

    def __call__(
        self,
        x,
        module=None,
        train=False,
        seed=0,
        grad=False,
        mode=None,
        any_shape=False,
    ):
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

        def job():
            seed_everything(seed, self.device)
            with torch.set_grad_enabled(grad), mode or contextlib.nullcontext():
                return self._forward(module, given)

        y = self._unwrap(guarded(self.worker, job, "forward_raises"))
        if not any_shape and (y.dim() != 3 or y.shape[:2] != x.shape[:2]):
            text = f"the input has the shape {tuple(x.shape)}, the output "
            raise CallFailed("wrong_shape", text + f"{tuple(y.shape)}")
        return y

    def candidates(self):
        """Return the readings of the weights, or an empty list."""
        if self._weights is not None:
            try:
                return [from_adapter(self._weights(self.pristine)).cpu()]
            except Exception as error:
                raise UnusableError(
                    f"weights(module) failed: {first_line(error)}"
                ) from error
        found = find(self.pristine, self.sizes.get("num_heads"), self.sizes.get("d_in"))
        return [projections.cpu() for projections in found]

    def note(self, text):
        """Keep a remark for the report, once."""
        if text not in self.notes:
            self.notes.append(text)

    def _fresh(self):
        """Return a module that no earlier call can have disturbed."""
        if self.keeps_state:
            return self.copy()
        if self._shared is None:
            self._shared = self.copy()
        return self._shared

    def _forward(self, module, x):
        x = x.transpose(0, 1) if self.layout == "tbd" else x
        if self._call is not None:
            return self._call(module, x)
        if isinstance(module, nn.MultiheadAttention):
            return module(x, x, x, **self._mask_for(module, x))
        return module(*[x] * self.inputs(module))

    def _mask_for(self, module, x):
        """Return the keyword arguments with which PyTorch's own layer is causal."""
        if not self.causal:
            return {"need_weights": False}
        t = x.shape[1] if module.batch_first else x.shape[0]
        hidden = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        return {"need_weights": False, "attn_mask": hidden}

    @staticmethod
    def inputs(module):
        """Return how often forward wants x: once, or for query, key and value.

        Raises:
            UnusableError: it wants something else.
        """
        if isinstance(module, FunctionModule):
            return 1
        signature = inspect.signature(module.forward)
        required = [
            name
            for name, p in signature.parameters.items()
            if p.default is p.empty
            and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        ]
        starts = [name[0].lower() for name in required]
        if starts == ["q", "k", "v"]:
            return 3
        takes_any = any(
            p.kind is p.VAR_POSITIONAL for p in signature.parameters.values()
        )
        if len(required) == 1 or (not required and (takes_any or signature.parameters)):
            return 1
        raise UnusableError(
            f"forward takes ({', '.join(signature.parameters)}), and the check knows "
            f"only x, or query, key and value. Say how to call it, as in "
            f"check(…, call=lambda module, x: module(x, …))."
        )

    def _unwrap(self, output):
        if isinstance(output, tuple | list) and output:
            self.note(
                f"forward returned a {type(output).__name__} of {len(output)}; its "
                f"first entry was tested."
            )
            output = output[0]
        if not isinstance(output, torch.Tensor):
            raise CallFailed("not_a_tensor", f"it returned {type(output).__name__}")
        if self.layout == "tbd" and output.dim() >= 2:
            output = output.transpose(0, 1)
        return output


def guarded(worker, job, mistake):
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
        text = f"one call had not returned after {worker.seconds:g} s"
        raise CallHung("hangs", text) from None
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        mistake = "out_of_memory" if is_out_of_memory(error) else mistake
        text = f"{type(error).__name__}: {first_line(error)}{_where(error)}"
        raise CallFailed(mistake, text) from None


def _where(error):
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


def seed_everything(seed, device):
    """Seed the generator that dropout draws from, on the module's own device."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)


@contextlib.contextmanager
def random_state_kept(device):
    """Give the global random state back as it was."""
    devices = [device] if device is not None and device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        yield
