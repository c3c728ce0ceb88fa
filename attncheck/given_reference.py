"""What a reader gives as right: a module, a class or a function."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from attncheck.errors import Failure, UnusableError
from attncheck.modules import duplicate
from attncheck.source import Source
from attncheck.subject import run_guarded


def reference_from(given: object, source: Source) -> Callable[[nn.Module, Tensor], Any]:
    """Return a function (module, x) that computes what is right.

    Raises:
        UnusableError: it is no module, class or function, or its weights differ.
    """
    if isinstance(given, type) and issubclass(given, nn.Module):
        twin = Source(given, dict(source.arguments), True, source.worker)
        try:
            given = twin.build()
        except Failure as failure:
            raise UnusableError(f"the reference can't be built: {failure}.") from None
    if isinstance(given, nn.Module):
        right = duplicate(given).eval()

        def function(module: nn.Module, x: Tensor) -> Any:
            _take_parameters(right, module)
            return right(x)
    elif callable(given):
        function = given
    else:
        raise UnusableError(
            f"reference must be a module, a class, a function (module, x), None or "
            f"False, but got {type(given).__name__}."
        )

    def guarded_function(module: nn.Module, x: Tensor) -> Any:
        def job() -> Any:
            with torch.no_grad():
                return function(module.eval(), x.clone())

        try:
            y = run_guarded(source.worker, job, "forward_raises")
        except Failure as failure:
            raise UnusableError(f"the reference failed: {failure}.") from None
        return y[0] if isinstance(y, tuple | list) else y

    return guarded_function


def _take_parameters(right: nn.Module, module: nn.Module) -> None:
    """Give the reference the parameters: with the buffers it would copy mistakes."""
    buffers = {name: value.clone() for name, value in right.named_buffers()}
    state = {name: p.detach() for name, p in module.named_parameters()}
    missing = [name for name, _ in right.named_parameters() if name not in state]
    unknown = set(state) - {name for name, _ in right.named_parameters()}
    if missing or unknown:
        raise RuntimeError(
            f"its parameters have different names. Missing: "
            f"{', '.join(missing) or 'none'}; unexpected: "
            f"{', '.join(sorted(unknown)) or 'none'}"
        )
    right.load_state_dict(state | buffers, strict=False)
