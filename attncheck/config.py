"""Constructors that take one object with all settings, and arguments that are guessed.

Which settings a plain object needs shows when it is used: what is asked for and is
missing gets a value by its name, until the class is built.
"""

import dataclasses
import inspect
import re
import typing
from collections.abc import Callable, Iterator, KeysView, Mapping
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from attncheck.limits import message

NAMES = re.compile(r"(\w+_)?(configs?|cfg|configuration|hparams|args)|conf|opts?|"
                   r"options|hps|params|settings")  # fmt: skip
TRIES = 40
KV_HEADS = r"(kv|key_value).*head|num_kv|n_kv|query_groups|kv_groups|num_groups"
# What arguments beside the known sizes are called, and what they may be.
GUESSES: list[tuple[str, Any]] = [
    (r"^vis|^log_|^return|^store|^debug|^keep", False),
    (KV_HEADS, "kv_heads"),
    (r"heads?_?(count|num|n)$|((^|_)n|^no|num|number|count)(_of)?_?(attn_|attention_|"
     r"q_|query_)?heads?$|^nhead|^heads?$|^n?h$", "num_heads"),
    (r"init\w*_(range|std)$|^std$", 0.02),
    (r"max_?pos|max_?rel|rel\w*_dist|max_dist|buckets?$", "context_length"),
    (r"soft_?cap|logits?_cap", 50.0),
    (r"^(en|de)coder$", False),
    (r"^act(?!ion)|_act(ivation)?(_fn|_func|_layer)?$", "gelu"),
    (r"norm_(layer|cls|class)$", nn.LayerNorm),
    (r"^d_(query|context|memory|cross|source)$", "d_in"),
    (r"^(dim|c)_?(q|k|v|kv)$|^(k|v|kv|q|key|value|context|cross)_?(in_)?(dim|channels)$"
     r"|_input_(dim|channels)$|^n?_?x$|^[cn]_?(in|out|x|state)$|^d_?cross$", "d_in"),
    (r"(head|qk|q|k|v|kv)_?(dim|size)|d_(head|k|v|q|kv|key)$|dim_(head|key)|dk$|dv$|"
     r"per_head|^d_(quer|key|value)", "d_head"),
    (r"lora\w*alpha", 1),
    (r"^lora\w*(dim|rank|_r)$", 0),
    (r"(rope|rot)\w*dim$", "d_head"),
    (r"(sr|reduction)_?(ratio|factor)$|^reduction$", 1),
    (r"drop", 0.0),
    (r"eps", 1e-5),
    (r"theta|(rope|rot\w*)_base|rope_freq", 10000.0),
    (r"layer_?(idx|id|index|number|num)|^layer$", 0),
    (r"_depth$", "d_in"),
    (r"layers?$|depth", 2),
    (r"vocab", 50),
    (r"rope_scaling|window", None),
    (r"rotary_(pct|percent|factor|fraction)|partial_rot|pretraining_tp", 1.0),
    (r"batch", 256),
    (r"dtype", torch.float32),
    (r"device", "cpu"),
    (r"implementation|attn_type|backend", "eager"),
    (r"_(mode|type)$", "standard"),
    (r"^scale_", True),
    (r"gamma|_init$", 1.0),
    (r"bias|flash|^use_|^is_|^do_|norm$|verbose|return|cache|output_att", False),
    (r"^(dim|d)_(attn|attention|inner|model)$|inner_dim|attn_dim", "d_in"),
    (r"len|ctx|position|seq|block|(agent|patch|patche|token|node|frame|point|slot|field)"
     r"s?$", "context_length"),
    (r"hid|embe?d|width|model|channels|features|input|^n_?dims?$|^in_d|^dims?$|units|"
     r"n_state|d_token|query_dim|feat|dim$|lora_rank|^c$|planes|size$", "d_in"),
    (UNSURE := r"^(n|num)_", 1),  # of whatever, and few
]  # fmt: skip
# Arguments that are no widths: what they do may change what is computed.
NO_WIDTH = re.compile(
    r"mask|caus|cross|rot|type|mode|flag|fn|func|act|norm|layer|att|name|path|scale|temp|"
    r"tau|factor|alpha|slope|rate|prob|gamma|beta|lambd|theta|ratio|win|span|radius|band|"
    r"stride|kernel|groups?|share|num_|^n_|pos|^p$|^k$|^ws$|block|unit|mem|rank|token|^is|"
    r"^use|^with|enc|dec|stage|group|rel|fac|init|train|bias|drop|concat|resid|module"
)


class Config(SimpleNamespace):
    """Settings that can be read as attributes and as entries."""

    def __getitem__(self, name: str) -> Any:
        try:
            return getattr(self, name)
        except AttributeError:
            raise KeyError(name) from None

    def __contains__(self, name: str) -> bool:
        return name in vars(self)

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self))

    def keys(self) -> KeysView[str]:
        """Return the names of all settings."""
        return vars(self).keys()

    def get(self, name: str, default: Any = None) -> Any:
        """Return a setting, or the default."""
        return getattr(self, name, default)


def is_head_width(name: str) -> bool:
    """Say whether an argument is the width of a head, by its name."""
    fits = (value for form, value in GUESSES if re.search(form, name.lower()))
    return next(fits, None) == "d_head"


def guess(name: str, sizes: dict[str, Any]) -> tuple[bool, Any]:
    """Return (whether the name says what the argument is, its value)."""
    for pattern, value in GUESSES:
        if re.search(pattern, name.lower()):
            h, d_in = sizes["num_heads"] or 1, sizes["d_in"] or 16
            known = {"kv_heads": max(h // 2, 1), "d_head": d_in // h} | sizes
            told = isinstance(value, str) and value in known
            return True, known[value] if told else value
    return False, None


def meaning(name: str) -> Any:
    """Return what the name says that an argument is: a size's name, a value or None."""
    fits = (value for form, value in GUESSES if re.search(form, name.lower()))
    return next(fits, None)


def is_unsure(name: str) -> bool:
    """Whether a value is a mere guess, since the name says that it is a number."""
    fits = [form for form, _ in GUESSES if re.search(form, name.lower())]
    return fits[:1] == [UNSURE]


def is_kv_heads(name: str) -> bool:
    """Whether an argument is the number of heads of keys and values."""
    return re.search(KV_HEADS, name.lower()) is not None


def may_be_width(name: str, parameter: inspect.Parameter) -> bool:
    """Whether an argument whose name says nothing may be a width, to be tried."""
    kind = parameter.annotation
    return kind in (int, "int", parameter.empty) and not NO_WIDTH.search(name.lower())


def is_default(name: str, value: Any) -> bool:
    """Tell whether a value is a config that an argument has by default."""
    named = NAMES.fullmatch(name.strip("_").lower())
    return bool(named) and hasattr(value, "__dict__") and not inspect.isclass(value)


def parameter_of(
    cls: type[Any], parameters: Mapping[str, inspect.Parameter]
) -> tuple[str | None, type | None]:
    """Return (name of the argument that takes all settings, its class), or Nones."""
    with_hints = {}
    try:
        with_hints = typing.get_type_hints(cls.__init__)
    except Exception:  # an annotation that cannot be resolved
        with_hints = {}
    for name, parameter in parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        kind: type[Any] | None = with_hints.get(name, parameter.annotation)
        kind = kind if inspect.isclass(kind) and kind is not inspect._empty else None
        plain = kind in (object, SimpleNamespace, int, float, bool, str, None)
        if (
            NAMES.fullmatch(name.strip("_").lower())
            and parameter.default is parameter.empty
        ):
            # A dictionary is read by its entries, which no class of settings has.
            known = None if kind is dict else kind
            return name, _settable(_kind_of(cls) if plain else known)
        if dataclasses.is_dataclass(kind) and parameter.default is parameter.empty:
            return name, kind
    return None, None


def _kind_of(cls: type) -> type | None:
    """Return the one class beside the given one whose name says that it is a config."""
    construct: Any = inspect.getattr_static(cls, "__init__")
    named: list[Any] = [
        value
        for name, value in getattr(construct, "__globals__", {}).items()
        if inspect.isclass(value)
        and re.search(r"config|args|params|cfg", name, re.IGNORECASE)
    ]
    held: list[Any] = [one for one in named if dataclasses.is_dataclass(one)]
    held = held or [one for one in named if _attributes(one) or issubclass(one, tuple)]
    return held[0] if len(held) == 1 else None


def _attributes(kind: Any) -> dict[str, Any]:
    """Return {name: value} of a plain class that holds settings as its attributes."""
    plain = inspect.isclass(kind) and kind.__init__ is object.__init__
    if not plain or issubclass(kind, tuple):  # one with names is built by them
        return {}
    held: dict[str, Any] = {}
    for part in reversed(kind.__mro__):
        held |= vars(part) if part is not object else {}
    return {
        name: value
        for name, value in held.items()
        if not name.startswith("_")
        and not callable(value)
        and not isinstance(value, property | staticmethod | classmethod)
    }


def _settable(kind: Any) -> Any:
    """Return the class of a config so that its settings can be passed to it."""
    if kind is None or dataclasses.is_dataclass(kind) or not _attributes(kind):
        return kind

    class Settable(kind):
        """The same, with settings that were given."""

        attributes = _attributes(kind)

        def __init__(self, **given: Any) -> None:
            for name, value in given.items():
                setattr(self, name, value)

    Settable.__name__ = kind.__name__
    return Settable


def fields_of(kind: Any) -> dict[str, Any] | None:
    """Return {name: default or None} of a config's class, or None if none are told."""
    if dataclasses.is_dataclass(kind):
        found = {}
        for field in dataclasses.fields(kind):
            if not field.init:
                continue
            default = field.default
            if default is dataclasses.MISSING and (
                field.default_factory is not dataclasses.MISSING
            ):
                continue  # made by itself
            found[field.name] = default
        return found
    if isinstance(getattr(kind, "attributes", None), dict):
        return dict(kind.attributes)
    try:
        parameters = inspect.signature(kind).parameters
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        named = {n: p for n, p in parameters.items() if p.kind is not p.VAR_KEYWORD}
        return {n: p.default for n, p in named.items()} if named else None
    return {name: p.default for name, p in parameters.items()}


def asked_for(
    build: Callable[[dict[str, Any]], object],
    settings: Mapping[str, Any],
    known: Callable[[str], tuple[bool, Any]],
    sizes: dict[str, Any],
) -> tuple[dict[str, Any], list[str]]:
    """Build with an object that gets what is asked of it; return (settings, unknown).

    Args:
        build: function (settings) that builds the class.
        settings: those that were given.
        known: function (name) that returns (whether it is known, a value).
        sizes: the sizes to guess by.
    """
    settings, unknown = dict(settings), []
    for _ in range(TRIES):
        try:
            build(settings)
        except Exception as error:
            missing = missing_in(f"{type(error).__name__}: {message(error)}")
            if missing is None or missing in settings:
                break
            found, value = known(missing)
            if not found:
                found, value = guess(missing, sizes)
            if not found:
                unknown.append(missing)
                value = False
            settings[missing] = value
        else:
            break
    return settings, unknown


def missing_in(text: str) -> str | None:
    """Return the name of the setting that a text says is missing, or None."""
    match = re.search(r"'Config' object has no attribute '(\w+)'", text)
    match = match or re.search(r"KeyError: '(\w+)'", text)
    return match.group(1) if match else None
