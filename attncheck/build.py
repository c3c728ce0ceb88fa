"""Builds the module to test from whatever the reader gives."""

import copy
import inspect
import re
import textwrap
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy as is_lazy_parameter
from torch.nn.utils import parametrize
from torch.nn.utils.weight_norm import WeightNorm

from attncheck import config
from attncheck.limits import message

DEFAULTS = {
    "d_in": 16,
    "d_out": 16,
    "context_length": 8,
    "dropout": 0.0,
    "num_heads": 4,
}
CLOSED = 2e-3  # what multiplies an output with less hides it
ABSURD = 1e18  # for a parameter as it is built
ROTATED = re.compile("rot|rope|partial")
HIDES = re.compile(r"(minus|neg)\w*_inf$|^mask\w*_(value|fill)$")
RATE = re.compile("drop|(^|_)p($|_)")
# What other authors call the chapter's arguments.
_WORDS = {
    "d_in": "d_in d_model embed_dim emb_dim n_embd embed_size hidden_size model_dim "
    "dim dim_in in_dim input_dim in_features embedding_dim embedding_size emb_size "
    "n_embed n_emb emb embed_dims hidden_dim dim_model model_size d_hid in_channels "
    "channels n_channels n_state d_token hid_dim input_size in_dim query_dim num_units "
    "nx n_in c_in d_embed inp",
    "d_out": "d_out dim_out out_dim output_dim out_features oup head_size",
    "context_length": "context_length block_size max_seq_len max_seq_length max_len "
    "seq_len n_positions max_length ctx_len n_ctx ctx_size seq_length max_seq "
    "context_window",
    "dropout": "dropout dropout_p dropout_rate attn_dropout attn_pdrop p_drop "
    "drop_rate attention_dropout attn_drop drop_prob dropout_prob drop p "
    "attn_dropout_p attn_drop_p attention_dropout_p attn_dropout_rate p_dropout "
    "d_rate drop_p attn_p p_attn attention_p attn_dropout_prob "
    "attention_probs_dropout_prob",
    "num_heads": "num_heads n_heads n_head heads nhead num_attention_heads h n_h "
    "nb_head head_num num_head heads_count number_of_heads no_heads nb_heads "
    "num_q_heads n_q_heads num_query_heads n_local_heads query_heads q_heads "
    "num_attn_heads n_attn_heads attn_heads attention_heads",
    "qkv_bias": "qkv_bias bias use_bias",
    "causal": "causal is_causal casual masked use_causal use_causal_mask is_decoder",
}
ALIASES = {name: others.split() for name, others in _WORDS.items()}


class UnusableError(Exception):
    """What was given cannot be tested; the message says what to do."""


class FunctionModule(nn.Module):
    """A plain function from tokens to context vectors, as a module."""

    def __init__(self, function: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        """Apply the function."""
        return self.function(x)


@dataclass
class Plan:
    """How a constructor is called.

    Attributes:
        arguments: what is passed, settings of a config among them.
        mapped: {the chapter's name: the constructor's or the config's}.
        config: (arguments that take a config, its class, the names of its settings),
            or None.
        guessed: {argument: value} that only its name told.
        rates: names of all rates of dropout, those left to their defaults too.
        asks: what to say where it fails, since an argument is a guess; or "". A
            setting of a config may do anything, so that only passing counts.
    """

    arguments: dict[str, Any]
    mapped: dict[str, str]
    config: tuple[str, type, frozenset[str]] | None = None
    guessed: dict[str, Any] = field(default_factory=dict)
    rates: tuple[str, ...] = ()
    asks: str = ""

    def make(self, cls: type, arguments: dict[str, Any]) -> Any:
        """Return the instance."""
        if self.config is None:
            return cls(**arguments)
        name, kind, names = self.config
        if is_dataclass(kind):  # its other settings, in place of their defaults
            own = inspect.signature(cls).parameters
            names |= {f.name for f in fields(kind) if f.name not in own}
        inside = {n: value for n, value in arguments.items() if n in names}
        rest = {n: value for n, value in arguments.items() if n not in names}
        # What a config computes from others is no argument of its constructor.
        computed = {n: v for n, v in inside.items() if n not in _taken(kind, names)}
        held = kind(**{n: v for n, v in inside.items() if n not in computed})
        for setting, value in computed.items():
            setattr(held, setting, value)
        return cls(**dict.fromkeys(name.split(), held), **rest)


def _taken(kind: type, names: Collection[str]) -> Collection[str]:
    """Return the names of settings that a config's constructor takes."""
    if not is_dataclass(kind):
        return names
    return [f.name for f in fields(kind) if f.init]


def constructor_arguments(
    cls: type,
    given: Mapping[str, Any],
    causal: bool,
    settings: Mapping[str, Any] | None = None,
) -> Plan:
    """Match the sizes to the constructor's own names, or to those of its config.

    Args:
        cls: the class.
        given: the reader's constructor arguments, by the chapter's or own names.
        causal: passed on if the constructor asks for it.
        settings: those of a config that the reader gave, by its own names.

    Returns:
        :class:`Plan`.

    Raises:
        UnusableError: the constructor needs or lacks a name.
    """
    parameters = _parameters(cls)
    taken, kind = config.parameter_of(cls, parameters)
    if settings and taken is None:
        own = [n for n, p in parameters.items() if config.is_default(n, p.default)]
        names = own or [n for n, p in parameters.items() if p.default is p.empty]
        if not names:
            raise UnusableError(_names_differ(cls, list(parameters), "no config"))
        taken, kind = names[0], None
        if own:
            settings = vars(parameters[taken].default) | dict(settings)
    if taken is not None and taken not in given:
        return _with_config(cls, parameters, (taken, kind), given, causal, settings)
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    names = [n for n, p in parameters.items() if p.kind in _NAMED]
    mapped = _mapped(names)
    arguments: dict[str, Any] = {}
    wide = _widened({n: parameters[n].default for n in names} | dict(given))
    for ours, value in (DEFAULTS | wide | {"causal": causal}).items():
        if ours in mapped:
            arguments[mapped[ours]] = value
    if "num_heads" in mapped and mapped.get("d_out") == "head_size":
        # The width of one head, then, and d_out is that of all together.
        del mapped["d_out"]
        arguments["head_size"] = DEFAULTS["d_out"] // DEFAULTS["num_heads"]
    flags = _turned_on(parameters, causal)
    arguments |= {n: True for n in flags if n not in given}
    if flags:  # which may need the number that hides
        free = [n for n, p in parameters.items() if p.default is None]
        arguments |= {n: -1e9 for n in free if HIDES.search(n) and n not in given}
    for name, value in given.items():
        target = name if name in names else mapped.get(name, name)
        if target == "context_length" and names and target not in names:
            continue  # for the tests alone, also where the constructor passes all on
        if target not in names and not takes_any:
            if name in DEFAULTS:
                continue  # a size that is of use for the tests alone
            raise UnusableError(_names_differ(cls, names, f"it was given {name}"))
        arguments[target] = value
    if takes_any:
        for ours, value in DEFAULTS.items():
            if ours not in mapped and len(names) == 0:
                arguments.setdefault(ours, value)
    left = {n: parameters[n].default for n in names if n not in arguments}
    needed = [
        name
        for name, default in left.items()
        if default is inspect.Parameter.empty or _shares(name, default)
    ]
    sizes = (
        DEFAULTS | wide | {o: arguments[t] for o, t in mapped.items() if t in arguments}
    )
    tried = {name: config.guess(name, sizes) for name in needed}
    missing = [name for name, (found, _) in tried.items() if not found]
    unsure = [n for n in needed if n in missing or config.is_unsure(n)]
    asks = _names_differ(cls, names, f"it needs {', '.join(unsure)}", unsure)
    if any(not config.may_be_width(name, parameters[name]) for name in missing):
        raise UnusableError(asks)
    tried |= {name: (True, sizes["d_in"]) for name in missing}
    guessed = {name: value for name, (_, value) in tried.items()}
    for name, value in guessed.items():  # as a window that hides nothing
        if value is None and parameters[name].annotation in (int, "int"):
            guessed[name] = sizes["context_length"]
    for ours in ("d_in", "num_heads"):  # one that means it may have other values, too
        alike = [n for n in needed if n in missing and ours == "d_in"]
        alike += [n for n in needed if config.meaning(n) == ours]
        if ours not in mapped and len(alike) == 1:
            mapped[ours] = alike[0]
    defaults = {name: parameters[name].default for name in names}
    return Plan(
        arguments | guessed,
        mapped,
        guessed=guessed,
        rates=rates_of(defaults | arguments),
        asks=asks if unsure else "",
    )


def _shares(name: str, default: Any) -> bool:
    """Whether it is how many heads share keys and values, and groups may be given.

    One alone may be all that the class knows.
    """
    many = default is None or (type(default) is int and default > 1)
    return many and config.is_kv_heads(name)


def _widened(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return widths of which the part that is rotated still holds two angles."""
    shares = [
        value
        for name, value in values.items()
        if ROTATED.search(name) and type(value) is float and 0 < value < 1
    ]
    times = min(round(1 / min(shares)), 8) if shares else 1
    return {name: times * DEFAULTS[name] for name in ("d_in", "d_out")}


def _turned_on(parameters: Mapping[str, inspect.Parameter], causal: bool) -> list[str]:
    """Return the names of flags, off by default, that have scores scaled or hidden."""
    words = "scale scaled use_scale"
    if causal:
        words += " mask masked use_mask with_mask apply_mask"
        words += " mask_future future_mask causal_mask"
    flags = {n for n, p in parameters.items() if p.default is False}
    return sorted(flags & {*words.split()})


def rates_of(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of those that are rates of dropout."""
    return tuple(n for n, v in values.items() if RATE.search(n) and type(v) is float)


def _mapped(names: Collection[str]) -> dict[str, str]:
    """Return {the chapter's name: the first of these names that means the same}."""
    mapped: dict[str, str] = {}
    own = {name.lower(): name for name in reversed([*names])} | {n: n for n in names}
    for ours, theirs in ALIASES.items():
        free = [own[n] for n in theirs if n in own and own[n] not in mapped.values()]
        if free:
            mapped[ours] = free[0]
    return mapped


def _with_config(
    cls: type,
    parameters: Mapping[str, inspect.Parameter],
    taken: tuple[str, type | None],
    given: Mapping[str, Any],
    causal: bool,
    settings: Mapping[str, Any] | None,
) -> Plan:
    """Return the plan of a class that takes one object with all settings."""
    name, kind = taken
    settings = dict(settings or {})
    outside = {n: value for n, value in given.items() if n in parameters}
    inside = {n: value for n, value in given.items() if n not in parameters}
    for other, parameter in parameters.items():
        if other == name or other in outside or parameter.kind not in _NAMED:
            continue
        if parameter.default is parameter.empty:
            if config.NAMES.fullmatch(other.strip("_").lower()):
                name, kind = f"{name} {other}", None  # as one for each side
                continue
            found, value = config.guess(other, DEFAULTS)
            if not found and config.may_be_width(other, parameter):
                found, value = True, DEFAULTS["d_in"]
            if not found:
                more = f"it needs {name} and {other}"
                raise UnusableError(_names_differ(cls, list(parameters), more, [other]))
            outside[other] = value
    outside = dict.fromkeys(_turned_on(parameters, causal), True) | outside
    sizes = DEFAULTS | {n: v for n, v in inside.items() if n in DEFAULTS}
    ours_of = {other: ours for ours, others in ALIASES.items() for other in others}

    def known(setting: str) -> tuple[bool, Any]:
        ours = ours_of.get(setting)
        value = (sizes | {"causal": causal, "qkv_bias": False}).get(ours)
        return ours is not None and value is not None, value

    held = config.fields_of(kind) if kind else None
    if held is not None and not is_dataclass(kind):
        # One that makes its settings of something else: only they are known.
        lacking = [n for n, v in held.items() if v is inspect.Parameter.empty]
        lacking = [n for n in lacking if n not in settings and not known(n)[0]]
        if any(not config.guess(n, sizes)[0] for n in lacking):
            held = None
    if kind and held is not None:
        made, unknown = {}, []
        mapped = _mapped(list(held))
        for setting, default in held.items():
            found, value = known(setting)
            found = found and setting == mapped.get(ours_of[setting])
            needed = default in (MISSING, inspect.Parameter.empty)
            needed |= _shares(setting, default)
            if not found and needed:
                found, value = config.guess(setting, sizes)
            if not found and needed and setting not in settings:
                unknown.append(setting)
                found, value = True, False
            if found and (needed or ours_of.get(setting) in (*DEFAULTS, "causal")):
                made[setting] = value
        made |= _in_proportion(held, mapped, sizes) | settings
    else:
        kind = config.Config
        made, unknown = config.asked_for(
            lambda tried: cls(
                **dict.fromkeys(name.split(), config.Config(**tried)), **outside
            ),
            settings, known, sizes,
        )  # fmt: skip
    for setting, value in inside.items():
        if setting not in DEFAULTS:
            made[setting] = value
    asks = ""
    if unknown:
        asks = (
            f"{cls.__name__}({name}) reads {', '.join(unknown)} of its config, and "
            f"no value is known for them. On the command line, add "
            f"{' '.join(f'--config {setting}=…' for setting in unknown)}. In Python, "
            f"build an instance yourself and check that."
        )
    mapped = {o: n for o, n in _mapped(list(made)).items() if o != "qkv_bias"}
    if "num_heads" in mapped and mapped.get("d_out") == "head_size":
        del mapped["d_out"]  # the width of one head
    defaults = {n: p.default for n, p in parameters.items()} | (held or {})
    rates = rates_of(defaults | made)
    plan = Plan(
        made | outside,
        mapped,
        (name, kind, frozenset(made) | {*rates} & {*(held or {})}),
        rates=rates,
        asks=asks,
    )
    plan.guessed = {n: v for n, v in made.items() if n not in settings}
    return plan


def _in_proportion(
    held: Mapping[str, Any], mapped: Mapping[str, str], sizes: Mapping[str, Any]
) -> dict[str, int]:
    """Return settings whose defaults go with others that are smaller now."""
    width, heads = (held.get(mapped.get(n, "")) for n in ("d_in", "num_heads"))
    if type(width) is not int or type(heads) is not int or not 0 < heads <= width:
        return {}
    d, d_head = width // heads, sizes["d_in"] // sizes["num_heads"]
    scaled = {}
    for name, default in held.items():
        if type(default) is not int or name in (mapped["d_in"], mapped["num_heads"]):
            continue
        if default == d and "head" in name:
            scaled[name] = d_head
        elif ROTATED.search(name) and 1 < default <= d and "base" not in name:
            # That of MLA is a width of its own, so that pairs can differ in speed.
            scaled[name] = max(default * d_head // d, 4 if "head" in name else 2)
    return scaled


_NAMED = (
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
)


def parameters_of(cls: type) -> dict[str, inspect.Parameter]:
    """Return the constructor's parameters, with those that it hands on to its base.

    Raises:
        TypeError, ValueError: Python can't tell.
    """
    if inspect.getattr_static(cls, "__init__") is nn.Module.__init__:
        return {}
    parameters = dict(inspect.signature(cls).parameters)
    kinds = {p.kind for p in parameters.values()}
    own = [c for c in cls.__mro__ if "__init__" in vars(c)]
    if {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} <= kinds and (
        len(own) > 1 and own[1] is not nn.Module and issubclass(own[1], nn.Module)
    ):
        handed = parameters_of(own[1])
        stars = [n for n, p in parameters.items() if p.kind not in _NAMED]
        return handed | {n: p for n, p in parameters.items() if n not in stars}
    return parameters


def _parameters(cls: type) -> dict[str, inspect.Parameter]:
    try:
        return parameters_of(cls)
    except (TypeError, ValueError):
        raise UnusableError(
            f"Python can't tell which arguments {cls.__name__} takes. "
            f"Build an instance yourself and check that."
        ) from None


def _names_differ(
    cls: type, names: list[str], reason: str, missing: Iterable[str] = ()
) -> str:
    missing = list(missing) or [(names or ["d_in"])[-1]]
    takes = ", ".join(names) if names else "no arguments"
    return (
        f"{cls.__name__} takes {takes}; {reason}. Known names are "
        f"{', '.join(DEFAULTS)}. Pass the others by name, as in "
        f"check({cls.__name__}, {', '.join(f'{name}=…' for name in missing)}), or "
        f"check an instance. On the command line, use "
        f"{' '.join(f'--set {name}=…' for name in missing)}, or --config for a class "
        f"that takes one object with all settings."
    )


def duplicate(module: nn.Module) -> nn.Module:
    """Copy a module, with the tensors of an earlier call that it may have kept.

    Raises:
        UnusableError: it cannot be copied.
    """
    memo: dict[int, Any] = {}
    for part in module.modules():
        for value in vars(part).values():
            # deepcopy refuses tensors that belong to a graph.
            if isinstance(value, torch.Tensor) and not value.is_leaf:
                memo[id(value)] = value.detach().clone()
            # A module has ten of hooks, and deepcopy is slow with them.
            elif type(value) is OrderedDict and not value:
                memo[id(value)] = OrderedDict()
    try:
        return copy.deepcopy(module, dict(memo))
    except Exception:
        memo |= {id(one): one for one in _uncopied(module)}
    try:
        return copy.deepcopy(module, memo)
    except Exception as error:
        raise UnusableError(
            f"the instance can't be copied ({type(error).__name__}: "
            f"{first_line(error)}), and the check works on a copy. "
            f"Check the class, or a new instance."
        ) from None


def _uncopied(module: nn.Module) -> Iterator[Any]:
    """Yield settings that can't be copied, as some configs: copies share them."""
    for part in module.modules():
        for name, value in vars(part).items():
            if not name.startswith("_") and not isinstance(value, torch.Tensor):
                try:
                    copy.deepcopy(value)
                except Exception:
                    yield value


def fold(module: nn.Module) -> None:
    """Make plain weights of those that are computed anew with each call.

    As a weight's direction and size are: what the layer computes stays the same.
    """
    for part in list(module.modules()):
        if parametrize.is_parametrized(part):
            kind = type(part)  # copies share it, and PyTorch takes the weight off it
            part.__class__ = type(kind.__name__, kind.__bases__, dict(vars(kind)))
            held: Any = part.parametrizations
            for name in list(held):
                parametrize.remove_parametrizations(part, name)
        for hook in list(part._forward_pre_hooks.values()):
            if isinstance(hook, WeightNorm):
                nn.utils.remove_weight_norm(part, hook.name)


def is_lazy(module: nn.Module) -> bool:
    """Whether some of its sizes wait for the first call."""
    return any(is_lazy_parameter(p) for p in module.parameters())


def randomise(module: nn.Module) -> None:
    """Give weights and biases new random values, of a size that spreads softmax out.

    A fresh layer may hold zeros (biases) or weights so small or large that mistakes
    hardly show. Parameters that look like a mask, with two values or infinite ones,
    and vectors other than biases, sinks, zeros and gates near 0 stay as they are.
    """
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if is_lazy_parameter(parameter) or parameter.is_meta:
                continue
            if not parameter.is_floating_point():
                continue
            _written(parameter)
            closed = _is_closed(parameter)
            if parameter.numel() == 1 and closed:
                parameter.fill_(0.7)
                continue
            if parameter.dim() >= 2 and not _is_mask(parameter):
                rows, columns = parameter.shape[-2:]
                size = max(rows * columns, 1) ** -0.25
            elif parameter.dim() == 1 and ("bias" in name or "sink" in name or closed):
                size = 0.3
            else:
                continue
            values = torch.randn(parameter.shape, generator=generator) * size
            parameter.copy_(values)


def _written(parameter: torch.Tensor) -> None:
    """Fill memory that nobody has written to: NaN, or numbers no layer begins with."""
    bad = parameter.isnan() | ((parameter.abs() > ABSURD) & parameter.isfinite())
    if bad.any() and not parameter.isinf().any():
        parameter.fill_(1.0 if parameter.dim() == 1 else 0.0)


def whole_sizes(given: Mapping[str, Any]) -> None:
    """Refuse sizes that no tensor can have.

    Raises:
        UnusableError: a size is no whole number from 1.
    """
    for name in DEFAULTS:
        value = given.get(name)
        if name == "dropout" or value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise UnusableError(
                f"{name} must be a whole number, 1 or more, but got {value!r}."
            )


def _is_closed(parameter: torch.Tensor) -> bool:
    """Whether it is a gate that begins closed, or nearly so as in LayerScale."""
    flat = parameter.detach().flatten()
    return bool(len(flat) and (flat == flat[0]).all() and flat[0].abs() < CLOSED)


def _is_mask(parameter: torch.Tensor) -> bool:
    if not parameter.isfinite().all():
        return True
    flat = parameter.detach().flatten()
    if not len(flat):
        return False
    low, high = flat.min(), flat.max()
    return bool(low != high and ((flat == low) | (flat == high)).all())


def first_line(error: BaseException) -> str:
    """Return an exception's message on one line, shortened."""
    text = " ".join(message(error).split()).rstrip(".") or "no message"
    return textwrap.shorten(text, 200, placeholder=" …")
