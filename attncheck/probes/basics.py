"""Tests of the call itself: shapes, the input, state, too many tokens."""

import contextlib
import inspect
from dataclasses import replace
from itertools import product

import torch
from torch import nn

from attncheck.build import rates_of
from attncheck.calling import (
    MASKS,
    as_mask,
    mask_names,
    plain_way,
    takes_documents,
)
from attncheck.collector import NEEDS_MORE, Collector, SkipTest
from attncheck.numbers import changed
from attncheck.subject import CallFailed, Subject

# Names of what a token sees, where that is less than all.
UNITS = r"window|chunk|patch|stride|segment|bucket|kernel|local|block_len|(^|_)unit"
LARGEST = 2048  # tokens; more would take too long


def state(subject: Subject, found: Collector) -> None:
    """Compute x, then something else, then x again, with one instance."""
    if _tell_kept_default(subject, found):
        return
    x, other = subject.tokens(), subject.tokens(b=2, t=3, seed=1)
    module = subject.copy()
    saved = _shapes(module)
    done = "Passed the same tokens twice to one instance, with others in between."
    first = subject(x, module).clone()
    _tell_state_dict(saved, _shapes(module), found)
    try:
        otherwise = _try_other(subject, other, module)
        again = subject(x, module)
    except CallFailed as failure:
        found.add("keeps_state", done, f"The second time, it raised {failure}.")
        return
    if first.shape != again.shape:
        seen = f"The shape was {tuple(first.shape)}, then {tuple(again.shape)}."
        found.add("keeps_state", done, seen)
    elif changed(first, again):
        gap = (first - again).abs().max().item()
        found.add("keeps_state", done, f"The outputs differ by up to {gap:.2g}.")
    elif otherwise:
        seen = "After a first call with more tokens, its output for these changed."
        found.add("keeps_state", done, seen)
    elif _depends_on_the_first(subject, x, other, first):
        seen = "After a first call with fewer tokens, it failed or its output changed."
        found.add("keeps_state", done, seen)
    else:
        subject.keeps_state = False
        _tell_kept_weights(subject, x, found)
        _tell_kept_mask(subject, x, first, found)
        _tell_kept_documents(subject, x, first, found)


def _tell_kept_weights(subject: Subject, x: torch.Tensor, found: Collector) -> None:
    """Change the weights after a call: the next one must know them."""
    used, fresh = subject.copy(), subject.copy()
    subject(x, used)
    for module in (used, fresh):
        for p in module.parameters():
            if p.is_floating_point():
                p.data.mul_(1.1)
    if changed(subject(x, fresh), subject(x, used)):
        done = "Passed the same tokens before and after all weights were changed."
        seen = "The second output still holds what was made of the old weights."
        found.add("keeps_state", done, seen)


def _tell_kept_default(subject: Subject, found: Collector) -> bool:
    """Look for a default of forward that earlier calls, of any instance, wrote into."""
    parameters = inspect.signature(subject.pristine.forward).parameters
    for name, one in parameters.items():
        if isinstance(one.default, dict | list) and one.default:
            done = f"Called it, and looked at what {name} is by default."
            seen = f"It's one {type(one.default).__name__} for all calls and instances,"
            found.add("keeps_state", done, f"{seen} and holds what they wrote into it.")
            return True
    return False


def _tell_kept_mask(
    subject: Subject, x: torch.Tensor, expected: torch.Tensor, found: Collector
) -> None:
    """Give masks that hide token 1, and see whether the next call knows of them."""
    how, module, names = subject.how, subject.copy(), set()
    way = None if how.call or subject.layer.memory else how.way or plain_way(module)
    b, t, _ = x.shape
    hidden = torch.zeros(t, t, dtype=torch.bool, device=x.device)
    hidden[2:, 1] = True
    for name, (_, form, axes) in product(mask_names(module, way) if way else (), MASKS):
        mask = hidden if axes == 2 else hidden.expand(b, *[1] * (axes - 3), t, t)
        given = way and way.with_values({name: as_mask(form, mask, x)})
        subject.how = replace(how, way=given)
        with contextlib.suppress(CallFailed):
            subject(x, module)
            names.add(name)
    subject.how = how
    if names and changed(expected, subject(x, module)):
        done = f"Passed {' or '.join(sorted(names))} once, and the tokens alone again."
        found.add("keeps_state", done, "The output still is another one.")


def _tell_kept_documents(
    subject: Subject, x: torch.Tensor, expected: torch.Tensor, found: Collector
) -> None:
    """Give two documents, and see whether the next call knows where they met."""
    layer, how, t = subject.layer, subject.how, x.shape[1]
    known = layer.documents or (takes_documents(subject.pristine) and not how.call)
    if not known or layer.memory or t < 3:
        return
    used, fresh = subject.copy(), subject.copy()
    subject.layer = replace(layer, documents=True)
    outputs = []
    try:
        for first, module in ((2, used), (1, used), (1, fresh)):
            subject.own_documents = (torch.arange(t) >= first).long().expand(len(x), t)
            outputs.append(subject(x, module))
    except CallFailed:
        return  # it takes them in another form
    finally:
        subject.layer, subject.own_documents = layer, None
    if changed(outputs[2], outputs[1]):
        done = "Passed rows with two documents, then rows where they meet elsewhere."
        found.add("keeps_state", done, "They count as apart where the first ones met.")
    elif changed(expected, subject(x, used)):
        done = "Passed a row with two documents, and what was passed before again."
        found.add("keeps_state", done, "The output still is another one.")


def _depends_on_the_first(
    subject: Subject, x: torch.Tensor, other: torch.Tensor, expected: torch.Tensor
) -> bool:
    """Whether a shorter input before spoils the longer one."""
    try:
        subject(other)
    except CallFailed:
        return False  # this size fails by itself
    module = subject.copy()
    subject(other, module)
    try:
        return changed(expected, subject(x, module))
    except CallFailed:
        return True


def _try_other(subject: Subject, other: torch.Tensor, module: nn.Module) -> bool:
    """Run the input in between; say whether its output isn't a fresh instance's.

    Not if this size fails for a fresh instance, too.
    """
    try:
        expected = subject(other)
    except CallFailed:
        return False
    return changed(expected, subject(other, module))


def _shapes(module: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in module.state_dict().items()}


def _tell_state_dict(
    before: dict[str, tuple[int, ...]],
    after: dict[str, tuple[int, ...]],
    found: Collector,
) -> None:
    new = [name for name, shape in after.items() if before.get(name) != shape]
    new += [name for name in before if name not in after]
    if new:
        done = "Compared state_dict() before and after one call."
        seen = f"Added, removed or reshaped: {', '.join(sorted(new))}."
        found.add("state_dict_changes", done, seen)


def shapes(subject: Subject, found: Collector) -> None:
    """Try several numbers of sequences and tokens."""
    limit = subject.limit or 8
    width = subject(subject.tokens()).shape[-1]
    tried = [(1, 1), (2, 1), (1, 2), (2, 5), (1, min(limit, 64)), (4, min(limit, 3))]
    refused: dict[int, tuple[str, str]] = {}
    taken: set[int] = set()
    for b, t in [(b, t) for b, t in tried if t <= limit]:
        done = f"Passed {b} {_plural(b, 'sequence')} of {t} {_plural(t, 'token')}."
        try:
            y = subject(subject.tokens(b, t), any_shape=True)
        except CallFailed as failure:
            if not NEEDS_MORE.search(str(failure)):
                refused.setdefault(t, (done, f"It raised {failure}."))
            continue
        taken.add(t)
        if tuple(y.shape) != (b, t, width):
            seen = f"The output has the shape {tuple(y.shape)}, not {(b, t, width)}."
            found.add("wrong_shape", done, seen)
    if refused:
        way = subject.how.way  # what it was given to hide nothing may be a bias
        known = _by_design(subject, taken, {*refused}) or (way and way.opened)
        severity = "warning" if known else None
        found.add("some_sizes_raise", *refused[min(refused)], severity)
    _width(subject, found, width)
    _strided(subject, found)


def _by_design(subject: Subject, taken: set[int], refused: set[int]) -> bool:
    """Whether it takes whole windows alone: multiples, or no less than one."""
    multiples = any(
        not any(t % unit for t in taken) and all(t % unit for t in refused)
        for unit in range(2, max(taken, default=0) + 1)
    )
    short = max(refused) < min(taken, default=0) and subject.speaks_of(UNITS)
    return not refused & taken and (multiples or short)


def _strided(subject: Subject, found: Collector) -> None:
    """Give it tokens that do not lie one behind the other in memory."""
    x = subject.tokens(b=2)
    apart = x.mT.contiguous().mT
    done = "Passed tokens that aren't contiguous in memory, as after a transpose."
    try:
        y = subject(apart, subject.copy(), grad=True)
    except CallFailed as failure:
        if failure.mistake == "backward_raises":  # so it is for any tokens
            raise
        found.add("not_contiguous", done, f"It raised {failure}.")
        return
    if not subject.keeps_state and changed(subject(x), y.detach(), 1e-4):
        found.add("not_contiguous", done, "The output is different.")


def _width(subject: Subject, found: Collector, width: int) -> None:
    """Compare the output's width with d_out, or h · d_out for separate heads."""
    d_out = subject.sizes.get("d_out")
    if d_out is None or width == d_out:
        return
    if subject.how.call is not None and width == subject.sizes["d_in"]:
        return  # what is called d_out may mean something else
    readings = subject.candidates()
    separate = not readings or readings[0].per_head
    if separate and width == d_out * (subject.sizes["num_heads"] or 1):
        return
    done = f"Built with d_out={d_out}, called with 3 sequences."
    found.add("wrong_shape", done, f"Each output vector is {width} wide, not {d_out}.")


def _plural(count: int, noun: str) -> str:
    return noun if count == 1 else noun + "s"


def input_kept(subject: Subject, found: Collector) -> None:
    """Compare the input before and after, and what else forward is given."""
    x = subject.tokens()
    given, unlearned, dropped = x.clone(), x.clone(), x.clone()
    with subject.arguments_changed() as others:
        subject(given, subject.copy(), grad=True)  # grad: given as it is, not cloned
        subject(unlearned, subject.copy(), grad=True, mode=torch.no_grad())
    rates = {n: 0.5 for n in rates_of(subject.given)}
    if rates and (one := subject.variant(own=rates)) is not None:
        with contextlib.suppress(CallFailed):  # a test of its own tells that
            one(dropped, one.copy(), grad=True, train=True)
    for after, words in (
        (given, ""),
        (unlearned, " without gradients"),
        (dropped, " in training mode with dropout"),
    ):
        if not torch.equal(x, after):
            gap = (x - after).abs().max().item()
            done = f"Compared the input with a copy made before the call{words}."
            found.add("changes_input", done, f"It changed by up to {gap:.2g}.")
            return
    tell_changed(others, found)


def tell_changed(arguments: dict[str, str], found: Collector) -> None:
    """Tell of an argument, as a mask, that another call would find changed."""
    for name, seen in arguments.items():
        done = f"Compared {name} with a copy made before the call."
        found.add("changes_input", done, seen)
        return


def same_in_eval(subject: Subject, found: Collector) -> None:
    """Call twice in eval() after different seeds, with dropout where there is any."""
    with_dropout = subject.variant(dropout=0.5)
    # Those of the output have names of their own.
    others = {n: 0.5 for n in rates_of(subject.given) if 0 <= subject.given[n] < 1}
    dropped = subject.variant(own=others) if others else None
    rate = " and dropout 0.5"
    for one, words in ((subject, ""), (with_dropout, rate), (dropped, rate)):
        if one is None:
            continue
        x = one.tokens()
        if changed(one(x, seed=1), one(x, seed=2)):
            done = f"Passed the same tokens twice in eval(){words}, with two seeds."
            found.add("random_in_eval", done, "The two outputs differ.")
            return


def too_many_tokens(subject: Subject, found: Collector) -> None:
    """Pass one token more than context_length."""
    if subject.limit is None:
        raise SkipTest("no context_length is known")
    t = subject.limit + 1
    if t > LARGEST:
        raise SkipTest(f"context_length={subject.limit} is too long for a quick test")
    x = torch.zeros(1, t, subject.sizes["d_in"]).to(subject.device, subject.dtype)
    try:
        y = subject(x, any_shape=True)
    except CallFailed:
        return  # right: it refuses
    done = f"Passed {t} tokens, with context_length={subject.limit}."
    if y.dim() == 3 and y.shape[1] < t:
        seen = f"No error, and the output has {y.shape[1]} tokens."
        found.add("too_many_tokens_cut", done, seen)
    else:
        found.add("too_many_tokens_accepted", done, "No error was raised.")
