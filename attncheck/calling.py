"""How a module wants to be called: with x, query, key and value, or a memory."""

import inspect

import torch
from torch import nn

from attncheck.build import FunctionModule, UnusableError

MEMORIES = ("memory", "context", "encoder_output", "encoder_hidden_states", "enc_out",
            "key_value", "kv", "y", "cond", "source")  # fmt: skip
DOCUMENTS = ("doc", "seg", "seq", "packed")  # how the name of such an argument begins


def inputs(module):
    """Return how often forward wants x, and by which names.

    Once, or for query, key and value; keyword-only arguments by their names.

    Raises:
        UnusableError: it wants something else.
    """
    if isinstance(module, FunctionModule):
        return 1, []
    parameters = inspect.signature(module.forward).parameters
    required = [
        name
        for name, p in parameters.items()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    by_name = [n for n in required if parameters[n].kind is inspect._KEYWORD_ONLY]
    takes_any = any(p.kind is p.VAR_POSITIONAL for p in parameters.values())
    if _initials(required) == ["q", "k", "v"] or len(required) == 1:
        return len(required) - len(by_name), by_name
    if not required and (takes_any or parameters):
        return 1, []
    raise UnusableError(
        f"forward takes ({', '.join(parameters)}), and the check knows "
        f"only x, or query, key and value. For cross-attention say memory=6, the "
        f"number of its tokens; for packed documents, documents=True. Else say how to "
        f"call it, as in "
        f"check(…, call=lambda module, x: module(x, …)), or from a terminal "
        f'--call "lambda module, x: module(x, …)".'
    )


def with_memory(module):
    """Return a function (module, x, memory) that calls forward with a memory.

    Raises:
        UnusableError: it is not known how to pass the memory.
    """
    if isinstance(module, nn.MultiheadAttention):
        return lambda module, x, memory: module(x, memory, memory, need_weights=False)
    names = list(inspect.signature(module.forward).parameters)
    if _initials(names[:3]) == ["q", "k", "v"]:
        return lambda module, x, memory: module(x, memory, memory)
    for name in MEMORIES:
        if name in names[1:]:
            return lambda module, x, memory, n=name: module(x, **{n: memory})
    if len(names) >= 2:
        return lambda module, x, memory: module(x, memory)
    raise UnusableError(
        f"forward takes ({', '.join(names)}), and no memory. Say how to pass it, "
        f"as in check_cross(…, call=lambda module, x, memory: module(x, memory))."
    )


def with_documents(module, x, document):
    """Call forward with the number of each token's document (b, t)."""
    names = list(inspect.signature(module.forward).parameters)
    known = [name for name in names[1:] if name.strip("_").startswith(DOCUMENTS)]
    return module(x, **{known[0]: document}) if known else module(x, document)


def mask_of_pytorch(module, x, causal):
    """Return the keyword arguments with which PyTorch's own layer is causal."""
    if not causal:
        return {"need_weights": False}
    t = x.shape[1] if module.batch_first else x.shape[0]
    hidden = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
    return {"need_weights": False, "attn_mask": hidden}


def _initials(names):
    return [name.strip("_")[:1].lower() for name in names]
