"""What a constructor is given: the chapter's sizes under the names it has for them.

Some take one object with all settings. Which of them a plain object needs shows when
it is used: what is asked for and is missing gets a value by its name, until the class
is built.
"""

import dataclasses
import inspect
import re
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from torch import nn

from attncheck.errors import UnusableError, message
from attncheck.guesses import (
    ALIASES,
    DEFAULTS,
    guess,
    is_kv_heads,
    is_unsure,
    may_be_width,
    meaning,
)

NAMES = re.compile(r"(\w+_)?(configs?|cfg|configuration|hparams|args)|conf|opts?|"
                   r"options|hps|params|settings")  # fmt: skip
TRIES = 40
HIDES = re.compile(r"(minus|neg)\w*_inf$|^mask\w*_(value|fill)$")
RATE = re.compile("drop|(^|_)p($|_)")
_NAMED = (
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
)


class Config(dict[str, Any]):
    """Settings that can be read as attributes and as entries."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            text = f"'Config' object has no attribute '{name}'"
            raise AttributeError(text) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


@dataclass
class Plan:
    """How a constructor is called.

    Attributes:
        arguments: what is passed, settings of a config among them.
        mapped: {the chapter's name: the constructor's or the config's}.
        config: (argument that takes a config, its class, the names of its settings),
            or None.
        guessed: {argument: value} that only its name told.
        rates: names of all rates of dropout, those left to their defaults too.
        asks: what to say where it fails, since an argument is a guess; or "". A
            setting of a config may do anything, so that only passing counts.
    """

    arguments: dict[str, Any]
    mapped: dict[str, str]
    config: tuple[str, Any, frozenset[str]] | None = None
    guessed: dict[str, Any] = field(default_factory=dict)
    rates: tuple[str, ...] = ()
    asks: str = ""

    def make(self, cls: type, arguments: dict[str, Any]) -> Any:
        """Return the instance."""
        if self.config is None:
            return cls(**arguments)
        name, kind, names = self.config
        taken: Collection[str] = names
        if dataclasses.is_dataclass(kind):  # its other settings, too
            own = inspect.signature(cls).parameters
            every = dataclasses.fields(kind)
            names |= {f.name for f in every if f.name not in own}
            taken = {f.name for f in every if f.init}
        inside = {n: value for n, value in arguments.items() if n in names}
        rest = {n: value for n, value in arguments.items() if n not in names}
        held = kind(**{n: v for n, v in inside.items() if n in taken})
        # What a config computes from others is no argument of its constructor.
        for setting in inside.keys() - {*taken}:
            setattr(held, setting, inside[setting])
        return cls(**{name: held}, **rest)


def plan_call(
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

    Raises:
        UnusableError: the constructor needs or lacks a name.
    """
    parameters = parameters_of(cls)
    taken, kind = _config_of(cls, parameters)
    if settings and taken is None:
        needed = [n for n, p in parameters.items() if p.default is p.empty]
        if not needed:
            raise UnusableError(_say_names(cls, list(parameters), "it has no config"))
        taken = needed[0]
    if taken is not None and taken not in given:
        return _plan_config(cls, parameters, taken, kind, given, causal, settings or {})
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    names = [n for n, p in parameters.items() if p.kind in _NAMED]
    defaults = {name: parameters[name].default for name in names}
    mapped = _map_names(names)
    arguments = {
        mapped[ours]: value
        for ours, value in (DEFAULTS | {"causal": causal}).items()
        if ours in mapped
    }
    if _splits_heads(mapped):
        arguments["head_size"] = DEFAULTS["d_out"] // DEFAULTS["num_heads"]
    arguments |= {n: v for n, v in _flags(defaults, causal).items() if n not in given}
    for name, value in given.items():
        target = name if name in names else mapped.get(name, name)
        for_tests = not takes_any or (names and name == "context_length")
        if target not in names and name in DEFAULTS and for_tests:
            continue  # only the tests use this size
        if target not in names and not takes_any:
            raise UnusableError(_say_names(cls, names, f"it was given {name}"))
        arguments[target] = value
    if takes_any and not names:
        arguments = DEFAULTS | arguments
    needed = [
        name
        for name, default in defaults.items()
        if name not in arguments
        and (default is inspect.Parameter.empty or _shares(name, default))
    ]
    sizes = DEFAULTS | {o: arguments[t] for o, t in mapped.items() if t in arguments}
    guessed, missing = _guess_all(cls, parameters, needed, sizes)
    unsure = [n for n in needed if n in missing or is_unsure(n)]
    for name, value in guessed.items():  # a window as wide as the text hides nothing
        if value is None and parameters[name].annotation in (int, "int"):
            guessed[name] = sizes["context_length"]
    for ours in ("d_in", "num_heads"):  # an argument that means it may be varied
        alike = missing if ours == "d_in" else []
        alike = [*alike, *(n for n in needed if meaning(n) == ours)]
        if ours not in mapped and len(alike) == 1:
            mapped[ours] = alike[0]
    asks = _say_names(cls, names, f"it needs {', '.join(unsure)}", unsure)
    return Plan(
        arguments | guessed,
        mapped,
        guessed=guessed,
        rates=_rates(defaults | arguments),
        asks=asks if unsure else "",
    )


def _guess_all(
    cls: type,
    parameters: Mapping[str, inspect.Parameter],
    needed: Iterable[str],
    sizes: dict[str, Any],
) -> tuple[dict[str, Any], list[str]]:
    """Return (a value for each argument, those of which the name says nothing).

    Raises:
        UnusableError: one is no width either.
    """
    tried = {name: guess(name, sizes) for name in needed}
    missing = [name for name, (found, _) in tried.items() if not found]
    if any(not may_be_width(name, parameters[name]) for name in missing):
        unsure = [name for name in tried if name in missing or is_unsure(name)]
        reason = f"it needs {', '.join(unsure)}"
        raise UnusableError(_say_names(cls, list(parameters), reason, unsure))
    values = {name: value if found else sizes["d_in"]
              for name, (found, value) in tried.items()}  # fmt: skip
    return values, missing


def _splits_heads(mapped: dict[str, str]) -> bool:
    """Whether what seems to be d_out is the width of one head; if so, take it out."""
    splits = "num_heads" in mapped and mapped.get("d_out") == "head_size"
    if splits:
        del mapped["d_out"]
    return splits


def _shares(name: str, default: Any) -> bool:
    """Whether it is how many heads share keys and values, and groups may be given.

    One alone may be all that the class knows.
    """
    many = default is None or (type(default) is int and default > 1)
    return many and is_kv_heads(name)


def _flags(defaults: Mapping[str, Any], causal: bool) -> dict[str, Any]:
    """Return flags, off by default, that have scores scaled or hidden, and a fill."""
    words = "scale scaled use_scale"
    if causal:
        words += " mask masked use_mask with_mask apply_mask"
        words += " mask_future future_mask causal_mask"
    flags = [n for n in words.split() if defaults.get(n) is False]
    fills = [n for n, v in defaults.items() if v is None and HIDES.search(n)]
    return dict.fromkeys(flags, True) | (dict.fromkeys(fills, -1e9) if flags else {})


def _rates(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of those that are rates of dropout."""
    return tuple(n for n, v in values.items() if RATE.search(n) and type(v) is float)


def _map_names(names: Collection[str]) -> dict[str, str]:
    """Return {the chapter's name: the first of these names that means the same}."""
    mapped: dict[str, str] = {}
    own = {name.lower(): name for name in reversed([*names])} | {n: n for n in names}
    for ours, theirs in ALIASES.items():
        free = [own[n] for n in theirs if n in own and own[n] not in mapped.values()]
        if free:
            mapped[ours] = free[0]
    return mapped


def _plan_config(
    cls: type,
    parameters: Mapping[str, inspect.Parameter],
    name: str,
    kind: Any,
    given: Mapping[str, Any],
    causal: bool,
    settings: Mapping[str, Any],
) -> Plan:
    """Return the plan of a class that takes one object with all settings."""
    outside = {n: value for n, value in given.items() if n in parameters}
    inside = {n: value for n, value in given.items() if n not in parameters}
    needed = [
        other
        for other, one in parameters.items()
        if one.kind in _NAMED and one.default is one.empty
    ]
    needed = [other for other in needed if other != name and other not in outside]
    outside |= _guess_all(cls, parameters, needed, dict(DEFAULTS))[0]
    defaults = {n: p.default for n, p in parameters.items()}
    outside = _flags(defaults, causal) | outside
    sizes = DEFAULTS | {n: v for n, v in inside.items() if n in DEFAULTS}
    ours_of = {other: ours for ours, others in ALIASES.items() for other in others}
    known = sizes | {"causal": causal, "qkv_bias": False}

    def value_of(setting: str) -> tuple[bool, Any]:
        value = known.get(ours_of.get(setting, ""))
        return (True, value) if value is not None else guess(setting, sizes)

    held = fields_of(kind) if kind else None
    unknown: list[str] = []
    if held is not None and not dataclasses.is_dataclass(kind):
        # It computes its settings from others, so they are read one by one.
        bare = [n for n, v in held.items() if v is inspect.Parameter.empty]
        if any(n not in settings and not value_of(n)[0] for n in bare):
            held = None
    if held is not None:
        made, unknown = _settings(held, known, sizes, settings, ours_of)
    else:
        kind = Config
        made, unknown = _ask_for(
            lambda tried: cls(**{name: Config(tried)}, **outside), settings, value_of
        )
    made |= {n: value for n, value in inside.items() if n not in DEFAULTS}
    mapped = {o: n for o, n in _map_names(list(made)).items() if o != "qkv_bias"}
    _splits_heads(mapped)
    rates = _rates(defaults | (held or {}) | made)
    plan = Plan(
        made | outside,
        mapped,
        (name, kind, frozenset(made) | {*rates} & {*(held or {})}),
        rates=rates,
    )
    plan.guessed = {n: v for n, v in made.items() if n not in settings}
    if unknown:
        plan.asks = (
            f"{cls.__name__}({name}) reads {', '.join(unknown)} of its config, and "
            f"no value is known for them. On the command line, add "
            f"{' '.join(f'--config {setting}=…' for setting in unknown)}. In Python, "
            f"build an instance yourself and check that."
        )
    return plan


def _settings(
    held: Mapping[str, Any],
    known: Mapping[str, Any],
    sizes: dict[str, Any],
    settings: Mapping[str, Any],
    ours_of: Mapping[str, str],
) -> tuple[dict[str, Any], list[str]]:
    """Return (settings of a config's class that aren't the default, unknown ones)."""
    made, unknown, mapped = {}, [], _map_names(list(held))
    for setting, default in held.items():
        ours = ours_of.get(setting, "")
        found, value = setting == mapped.get(ours) and ours in known, known.get(ours)
        needed = default in (dataclasses.MISSING, inspect.Parameter.empty)
        needed |= _shares(setting, default)
        if not found and needed:
            found, value = guess(setting, sizes)
            if not found and setting not in settings:
                unknown.append(setting)
            value = value if found else False
        if needed or (found and ours in (*DEFAULTS, "causal")):
            made[setting] = value
    return made | _in_proportion(held, mapped, sizes) | dict(settings), unknown


def _in_proportion(
    held: Mapping[str, Any], mapped: Mapping[str, str], sizes: Mapping[str, Any]
) -> dict[str, int]:
    """Return widths of heads by default that go with a width that is smaller now."""
    width, heads = (held.get(mapped.get(n, "")) for n in ("d_in", "num_heads"))
    if type(width) is not int or type(heads) is not int or not 0 < heads <= width:
        return {}
    d_head = sizes["d_in"] // sizes["num_heads"]
    others = {n: v for n, v in held.items() if n not in mapped.values()}
    return {n: d_head for n, v in others.items() if v == width // heads and "head" in n}


def parameters_of(cls: type) -> dict[str, inspect.Parameter]:
    """Return the constructor's parameters, with those that it hands on to its base.

    Raises:
        UnusableError: Python can't tell.
    """
    if inspect.getattr_static(cls, "__init__") is nn.Module.__init__:
        return {}
    try:
        parameters = dict(inspect.signature(cls).parameters)
    except (TypeError, ValueError):
        raise UnusableError(
            f"Python can't tell which arguments {cls.__name__} takes. "
            f"Build an instance yourself and check that."
        ) from None
    kinds = {p.kind for p in parameters.values()}
    own = [c for c in cls.__mro__ if "__init__" in vars(c)]
    if {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} <= kinds and (
        len(own) > 1 and own[1] is not nn.Module and issubclass(own[1], nn.Module)
    ):
        handed = parameters_of(own[1])
        stars = [n for n, p in parameters.items() if p.kind not in _NAMED]
        return handed | {n: p for n, p in parameters.items() if n not in stars}
    return parameters


def _say_names(
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


def _config_of(
    cls: type[Any], parameters: Mapping[str, inspect.Parameter]
) -> tuple[str | None, Any]:
    """Return (name of the argument that takes all settings, its class), or Nones."""
    hints = {}
    try:
        hints = typing.get_type_hints(cls.__init__)
    except Exception:  # an annotation that cannot be resolved
        hints = {}
    for name, parameter in parameters.items():
        if parameter.kind not in _NAMED or parameter.default is not parameter.empty:
            continue
        kind: Any = hints.get(name, parameter.annotation)
        kind = kind if inspect.isclass(kind) and kind is not inspect._empty else None
        if NAMES.fullmatch(name.strip("_").lower()):
            if kind in (object, SimpleNamespace, int, float, bool, str, None):
                kind = _config_beside(cls)
            # A dictionary is read by its entries, which no class of settings has.
            return name, None if kind is dict else kind
        if dataclasses.is_dataclass(kind):
            return name, kind
    return None, None


def _config_beside(cls: type) -> Any:
    """Return the one class beside the given one whose name says that it is a config."""
    construct: Any = inspect.getattr_static(cls, "__init__")
    named = [
        value
        for name, value in getattr(construct, "__globals__", {}).items()
        if inspect.isclass(value)
        and re.search(r"config|args|params|cfg", name, re.IGNORECASE)
    ]
    held: list[Any] = [one for one in named if dataclasses.is_dataclass(one)]
    held = held or [one for one in named if issubclass(one, tuple)]
    return held[0] if len(held) == 1 else None


def fields_of(kind: Any) -> dict[str, Any] | None:
    """Return {name: default} of a config's class, or None if none are told."""
    if dataclasses.is_dataclass(kind):
        made = dataclasses.MISSING
        return {  # one with a factory is made by itself
            one.name: one.default
            for one in dataclasses.fields(kind)
            if one.init and (one.default is not made or one.default_factory is made)
        }
    try:
        parameters = inspect.signature(kind).parameters
    except (TypeError, ValueError):
        return None
    named = {n: p.default for n, p in parameters.items() if p.kind in _NAMED}
    return named if named or not parameters else None


def _ask_for(
    build: Callable[[dict[str, Any]], object],
    settings: Mapping[str, Any],
    value_of: Callable[[str], tuple[bool, Any]],
) -> tuple[dict[str, Any], list[str]]:
    """Build with an object that gets what is asked of it; return (settings, unknown).

    Args:
        build: function (settings) that builds the class.
        settings: those that were given.
        value_of: function (name) that returns (whether it is known, a value).
    """
    made, unknown = dict(settings), []
    for _ in range(TRIES):
        try:
            build(made)
        except Exception as error:
            missing = _missing_in(f"{type(error).__name__}: {message(error)}")
            if missing is None or missing in made:
                break
            found, value = value_of(missing)
            unknown += [] if found else [missing]
            made[missing] = value if found else False
        else:
            break
    return made, unknown


def _missing_in(text: str) -> str | None:
    """Return the name of the setting that a text says is missing, or None."""
    match = re.search(r"'Config' object has no attribute '(\w+)'", text)
    match = match or re.search(r"KeyError: '(\w+)'", text)
    return match.group(1) if match else None
