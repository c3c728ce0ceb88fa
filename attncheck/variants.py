"""Builds the same class in other sizes, so that mistakes cannot hide behind equals."""

from typing import Any

from torch import nn
from torch.nn.parameter import is_lazy

from attncheck.errors import CallFailed, UnusableError
from attncheck.guesses import size_held
from attncheck.source import Source, set_dropout
from attncheck.subject import How, Subject

# d_in, d_out and h, where no two of their roots, nor those of d_head, are equal. Where
# a class has one width alone, d_out is that width. Rotary positions need an even
# d_head, grouped heads an h that two divides.
DISTINCT = ((18, 24, 3), (20, 48, 6))
POWER_OF_2 = ((20, 40, 4),)  # where classes differ in the slopes for other numbers


def first_subject(source: Source, causal: bool, how: How, module: nn.Module) -> Subject:
    """Return the subject for the module, with sizes read from it.

    Raises:
        UnusableError: it is no module.
    """
    if not isinstance(module, nn.Module):
        raise UnusableError(f"{source.label} doesn't return a torch.nn.Module.")
    if any(is_lazy(p) for p in module.parameters()):
        raise UnusableError("its weights get their sizes in the first call. Call an "
                            "instance once, and check that.")  # fmt: skip
    source.complete_sizes(module)
    subject = Subject(module, source.worker, causal, dict(source.sizes), how)
    subject.limit = source.sizes["context_length"]
    subject.given = source.defaults() | source.arguments
    subject.takes_length = "context_length" in source.mapped
    subject.variant = lambda **changes: variant(source, subject, **changes)
    return subject


def variant(source: Source, subject: Subject, **changes: Any) -> Subject | None:
    """Return the subject with other arguments or another seed, or None.

    Arguments by the names of sizes, or in ``own`` by those of the constructor. With
    ``alone``, no other rate than ``dropout`` acts.
    """
    dropout, own = changes.pop("dropout", None), changes.pop("own", {})
    alone = changes.pop("alone", False)
    if not source.is_class and (changes or own):
        return None
    if not set(changes) <= {"seed", *source.mapped}:
        return None
    if dropout is not None and "dropout" in source.mapped:
        changes["dropout"] = dropout
    meant = "" if dropout == 0 else source.mapped.get("dropout", "")
    if alone or dropout == 0:
        own |= {name: 0.0 for name in source.plan.rates if name != meant}
    try:
        module = source.build(own=own, **changes)
    except CallFailed:
        return None
    by_argument = dropout is None or "dropout" in changes
    if not by_argument and not set_dropout(module, dropout):
        return None
    sizes = dict(subject.sizes)
    sizes |= {name: value for name, value in changes.items() if name in sizes}
    if "num_heads" not in source.mapped:  # it may follow from the width
        sizes["num_heads"] = size_held(module, "num_heads") or sizes["num_heads"]
    twin = Subject(module, subject.worker, subject.causal, sizes, subject.how)
    twin.layer, twin.layout = subject.layer, subject.layout
    twin.limit, twin.keeps_state = subject.limit, subject.keeps_state
    twin.fixed_length, twin.given = subject.fixed_length, subject.given | own
    twin.variant = lambda **changes: variant(source, twin, **changes)
    return twin


def uneven(subject: Subject) -> Subject | None:
    """Return the subject with d_in, d_out, h and d_head all different, if it can be.

    With equal sizes, a mistake about one of them would not show.
    """
    d_in, d_out = subject.sizes["d_in"], subject.sizes["d_out"]
    if d_out is not None and (d_in != d_out or d_in < 4):
        return None
    for sizes in _uneven_sizes(subject):
        found = runs(subject.variant(**sizes))
        if found is not None and _whole_groups(found):
            return found
    return None


def _uneven_sizes(subject: Subject) -> list[dict[str, int]]:
    """Return sizes without an alias, and then the nearest that may run."""
    d_in, d_out = subject.sizes["d_in"], subject.sizes["d_out"]
    h = subject.sizes["num_heads"] or 1
    more = {}
    if subject.takes_length and subject.limit:  # no width of a head, nor its alias
        more = {"context_length": subject.limit + 3}
    tries: list[dict[str, int]] = []
    alike = POWER_OF_2 if subject.speaks_of("alibi|slope") else ()
    # A function that names the weights may tell the number of heads as well.
    for wide_in, wide_out, heads in () if subject.how.weights else (*alike, *DISTINCT):
        known = {"num_heads": heads} if subject.sizes["num_heads"] else {}
        wide = {"d_in": wide_in, "d_out": wide_out} if d_out else {"d_in": wide_out}
        tries.append(known | more | wide)
    if d_out is None:
        return [*tries, {"d_in": d_in + 2 * h}]
    narrow = d_in - d_in // 4
    tries += [{"d_in": narrow, "d_out": d_out + 2 * h}, {"d_in": narrow}]
    # Where the input is added to the output.
    return [*tries, {"d_in": 24, "d_out": 24, "num_heads": 3}]


def _whole_groups(subject: Subject) -> bool:
    """Whether each key head serves the same number of query heads."""
    return all(
        reading.query[0].shape[0] % reading.key[0].shape[0] == 0
        for reading in subject.candidates()[:1]
    )


def runs(subject: Subject | None) -> Subject | None:
    """Return the subject if there is one that runs."""
    try:
        if subject is not None:
            subject(subject.tokens())
    except CallFailed:
        return None
    return subject
