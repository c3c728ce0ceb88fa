"""What all labs have in common on the Python side.

A lab is an anywidget: Python holds its state in traits, JavaScript computes and draws.
So the same cell works with a kernel and, from the stored state, without one.
"""

import functools
import inspect
import json
import os
from html import escape
from pathlib import Path

import anywidget
import torch
import traitlets

from attention.trainable import SelfAttention_v2
from coding_attention import example
from coding_attention.figures import pattern, show
from coding_attention.figures.picture import picture
from coding_attention.stored import LAB, STORING

FOLDER = Path(__file__).parent
SCRIPT = (FOLDER / "bundle.js").read_text(encoding="utf-8")  # `make labs` writes it
SHEETS = sorted(FOLDER.glob("*.css"), key=lambda path: path.name != "labs.css")
STYLES = "\n".join(path.read_text(encoding="utf-8") for path in SHEETS)
MAX_TOKENS = 12
MAX_FEATURES = 16
LETTERS = 11  # of a token's name beside a static figure
_pictures = []  # those of the static figure that is being made
RUN = "Run the page's cells to use the lab."  # below the picture in a notebook
HIDDEN = 'aria-hidden="true"'  # a figure's drawing: what is around it has the words


def projections(d_in=3, d_out=2):
    """Give the seed-123 weights of section 3.4: W_query, W_key, W_value.

    Drawn in this order with ``torch.rand``, (d_in, d_out) each, from a generator of
    their own: the reader's random numbers stay as they are.
    """
    generator = torch.Generator().manual_seed(123)
    return [torch.rand(d_in, d_out, generator=generator) for _ in range(3)]


def linear_projections(d_in=3, d_out=2):
    """Give the seed-789 weights of section 3.5: W_query, W_key, W_value.

    Those of ``SelfAttention_v2``, transposed to (d_in, d_out). The reader's random
    numbers stay as they are.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(789)
        layer = SelfAttention_v2(d_in, d_out)
    return [
        part.weight.detach().T for part in (layer.W_query, layer.W_key, layer.W_value)
    ]


def rows(value):
    """Give a tensor as nested lists; float32 with the digits that it holds."""
    if not value.is_floating_point() or value.dtype == torch.float64:
        return value.tolist()
    return _nested(value.tolist(), lambda x: float(f"{x:.7g}"))


def _nested(value, function):
    if isinstance(value, list):
        return [_nested(part, function) for part in value]
    return function(value)


class _Setting:
    """A trait that readers set, mixed into those of traitlets.

    ``first(lab)`` gives a first value that depends on other traits, ``check(lab, name,
    value)`` the value that is taken, or an error. It is asked when all traits that are
    set together have their values.
    """

    def __init__(self, *args, first=None, check=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.first = first
        self.tag(sync=True, lab=True, check=check)

    def default(self, obj=None):
        """Give the first value."""
        return self.first(obj) if self.first else super().default(obj)


class Bool(_Setting, traitlets.Bool):
    """True or False."""


class Dict(_Setting, traitlets.Dict):
    """A dict that is set as a whole."""


class Enum(_Setting, traitlets.Enum):
    """One of several words."""


class Float(_Setting, traitlets.Float):
    """A number."""


class Int(_Setting, traitlets.Int):
    """A whole number."""


class List(_Setting, traitlets.List):
    """A list that is set as a whole."""


class Matrix(_Setting, traitlets.TraitType):
    """A matrix of finite numbers: a tensor or rows of equal length, kept as lists."""

    info_text = "a matrix of finite numbers: a tensor (rows, columns) or nested lists"

    def validate(self, obj, value):
        """Give ``value`` as lists, or say what is wrong with it."""
        try:
            tensor = torch.as_tensor(value).detach().cpu()
        except (TypeError, ValueError, RuntimeError):
            self.error(obj, value)
        if isinstance(value, torch.Tensor):
            plain = rows(tensor if tensor.is_floating_point() else tensor.double())
        else:
            plain = (
                [[float(x) for x in row] for row in value] if tensor.dim() == 2 else []
            )
        self._require(obj, tensor)
        return plain

    def _require(self, obj, tensor):
        shape = tuple(tensor.shape)
        if tensor.dim() != 2 or 0 in shape:
            raise traitlets.TraitError(
                f"{self.name} must have two dimensions (rows, columns), none of them "
                f"empty, but got the shape {shape}. For one sequence of a batch, pass "
                f"{self.name}[0]."
            )
        if not torch.isfinite(tensor.double()).all():
            raise traitlets.TraitError(
                f"{self.name} must hold finite numbers only, but got inf or nan."
            )
        if shape[0] > MAX_FEATURES or shape[1] > MAX_FEATURES:
            raise traitlets.TraitError(
                f"{self.name} may have at most {MAX_FEATURES} rows and columns, but "
                f"got the shape {shape}. Pass a part of it, such as "
                f"{self.name}[:{MAX_TOKENS}, :{MAX_FEATURES}]."
            )


class Lab(anywidget.AnyWidget):
    """A figure that readers move. Subclasses have a ``title`` and their traits.

    ``shown`` lists the traits that the repr names, in order. index.js exports the
    script of a lab under the name of its class.
    """

    title = ""
    shown = ()

    def __init_subclass__(cls, **kwargs):
        # anywidget makes a subclass for each widget; those inherit all of this.
        if "title" in cls.__dict__:
            cls._esm = f"{SCRIPT}export default attentionLabs.{cls.__name__};\n"
            cls._css = STYLES
        checked = [
            name
            for name, trait in inspect.getmembers(cls)
            if isinstance(trait, _Setting) and trait.metadata["check"]
        ]
        cls._check = traitlets.validate(*checked)(_check)
        super().__init_subclass__(**kwargs)

    def __init__(self, **kwargs):
        for name in kwargs:
            if name not in (*self.public(), "layout", "model_id"):
                raise TypeError(
                    f"{type(self).__name__} has no argument {name!r}. "
                    f"It takes {', '.join(self.public())}."
                )
        super().__init__(**kwargs)

    @classmethod
    def public(cls):
        """Name the traits that a reader sets."""
        return sorted(cls.class_traits(sync=True, lab=True))

    def initial_state(self):
        """Give the traits that the lab's script reads."""
        widget = anywidget.AnyWidget.class_trait_names(sync=True)
        names = set(self.keys) - {*widget, "_esm", "_css", "_anywidget_id"}
        return self.get_state(sorted(names))

    def __repr__(self):
        state = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.shown)
        return f"{type(self).__name__}({state})"

    def fallback(self):
        """Give the static figure: a caption that has its numbers, and a picture."""
        raise NotImplementedError

    def _repr_mimebundle_(self, **kwargs):
        data, metadata = super()._repr_mimebundle_(**kwargs)
        data["text/plain"] = repr(self)
        # As text: nbformat would give each number a line.
        traits = json.dumps(self.initial_state(), ensure_ascii=False, sort_keys=True)
        data[LAB] = {"lab": type(self).__name__, "traits": traits}
        _pictures.clear()
        data["text/html"] = self.fallback()
        if os.environ.get(STORING) and _pictures:
            drawings = [one for shown in _pictures for one in shown.drawings]
            caption = " ".join([f"{self.title}.", RUN, *(p.caption for p in _pictures)])
            data["image/png"], width, height = picture(drawings, caption)
            metadata["image/png"] = {"width": width, "height": height}
        return data, metadata


def _check(lab, proposal):
    return proposal.trait.metadata["check"](lab, proposal.trait.name, proposal.value)


# ---- checks ----


def within(low, high):
    """Require a number from ``low`` to ``high``, numbers or functions of the lab.

    Raises:
        traitlets.TraitError: by the check, of a number outside.
    """

    def check(lab, name, value):
        least, most = (end(lab) if callable(end) else end for end in (low, high))
        if not least <= value <= most:
            raise traitlets.TraitError(
                f"{name} must be from {least} to {most}, but got {value}."
            )
        return value

    return check


def each(name, check):
    """Check every item of a list, which a message calls ``name``."""
    return lambda lab, _, values: [check(lab, name, value) for value in values]


def one_of(choices):
    """Require one of what ``choices(lab)`` gives.

    Raises:
        traitlets.TraitError: by the check, of anything else.
    """

    def check(lab, name, value):
        if value not in choices(lab):
            raise traitlets.TraitError(
                f"{name} must be one of {', '.join(map(repr, choices(lab)))}, but got "
                f"{value!r}."
            )
        return value

    return check


def token_index(lab, name, value, least=0):
    """Require ``value`` to be a token's index (``least`` -1 also allows no token).

    Raises:
        traitlets.TraitError: there is no such token.
    """
    last = len(lab.tokens) - 1
    if not least <= value <= last:
        none = " (or -1 for none)" if least < 0 else ""
        raise traitlets.TraitError(
            f"{name} must be the index of a token, from 0 to {last}{none}, but got "
            f"{value}."
        )
    return value


token_or_none = functools.partial(token_index, least=-1)


def projection(lab, name, value):
    """Require a weight matrix to fit the inputs and the other weights of ``lab``.

    Raises:
        traitlets.TraitError: its rows or columns do not fit.
    """
    d_in = len(lab.inputs[0])
    if len(value) != d_in:
        raise traitlets.TraitError(
            f"{name} must have d_in={d_in} rows, one for each number of a token, but "
            f"got the shape ({len(value)}, {len(value[0])}). An nn.Linear stores its "
            f"weight transposed: pass weight.T."
        )
    other = {"W_query": "W_key", "W_key": "W_query"}.get(name)
    if other and len(value[0]) != len(getattr(lab, other)[0]):
        raise traitlets.TraitError(
            "W_query and W_key must be equally wide, since each query is multiplied "
            "with each key. Pass both at once when making the lab."
        )
    return value


def sequence(lab, name, value):
    """Require few enough tokens, and the shape that a lab on the page has already.

    Raises:
        traitlets.TraitError: there are too many tokens, or the shape is another.
    """
    count = len(value)
    if count > MAX_TOKENS:
        raise traitlets.TraitError(
            f"{name} may have at most {MAX_TOKENS} tokens, but got {count}. "
            f"Pass {name}[:{MAX_TOKENS}]."
        )
    now = lab._trait_values.get(name)
    if now and lab.comm is not None:
        old, new = (len(now), len(now[0])), (count, len(value[0]))
        if old != new:
            raise traitlets.TraitError(
                f"this lab was made for {name} of the shape {old}, but got {new}. "
                f"Make a new one: {type(lab).__name__}({name}=...)."
            )
    return value


# ---- labs about one sequence ----


def token_names(of, known):
    """Make the trait that names the rows of the matrix ``of``.

    They have the example's words if the matrix is what ``known()`` gives.

    Raises:
        traitlets.TraitError: by its check, of too few or too many names.
    """

    def first(lab):
        matrix = getattr(lab, of)
        if matrix == known():
            return list(example.TOKENS)
        return [f"token {i + 1}" for i in range(len(matrix))]

    def check(lab, name, value):
        count = len(getattr(lab, of))
        if len(value) != count:
            raise traitlets.TraitError(
                f"{name} must name each row of {of}, so {count} of them, but got "
                f"{len(value)}: {value!r}."
            )
        return value

    return List(traitlets.Unicode(), first=first, check=check)


class SequenceLab(Lab):
    """A lab about one sequence of tokens, of up to 12 tokens with 16 numbers each.

    Traits:
        inputs: matrix (t, d_in); the running example unless given.
        tokens: a name for each row of ``inputs``.
    """

    inputs = Matrix(first=lambda lab: rows(example.inputs()), check=sequence)
    tokens = token_names("inputs", lambda: rows(example.inputs()))

    def tensor(self, name):
        """Give a matrix trait as a float64 tensor, to compute with it."""
        return torch.tensor(getattr(self, name), dtype=torch.float64)


class ProjectedLab(SequenceLab):
    """A lab about one head, whose first weights ``seeded(d_in)`` gives.

    Traits:
        W_query, W_key, W_value: matrices (d_in, d_out).
    """

    seeded = staticmethod(projections)

    W_query, W_key, W_value = (
        Matrix(first=lambda lab, n=n: lab.drawn(n), check=projection) for n in range(3)
    )

    def drawn(self, n):
        """Give the first values of the ``n``-th weight matrix, as lists."""
        return rows(self.seeded(len(self.inputs[0]))[n])

    def project(self, x):
        """Give queries, keys and values of x (t, d_in)."""
        return [x @ self.tensor(name) for name in ("W_query", "W_key", "W_value")]


# ---- static figures ----


def static(title, caption, *parts):
    """Wrap the static figure of a lab; the site's loader replaces it by the lab."""
    return (
        f'<div class="attn-static"><p class="al-title">{escape(title)}</p>'
        f"<p>{escape(caption)}</p>{''.join(parts)}</div>"
    )


def heat_map(alternative, names, columns, values):
    """Give the book's figure of a pattern of weights, with a text for it."""
    weights = torch.as_tensor(values).nan_to_num(0.0)
    return drawing(pattern(weights, _labels(names), _labels(columns)), alternative)


def drawing(figure, alternative, caption=""):
    """Give a figure of the book as HTML, with a text for it.

    ``caption`` stands below it where it is stored as a picture, else the text does.
    """
    shown = show(figure, caption=caption or alternative, alt=alternative)
    _pictures.append(shown)
    (svg,) = shown.svgs
    told = f'role="img" aria-label="{escape(alternative)}"'
    return f'<div style="display: flex">{svg.replace(HIDDEN, told)}</div>'


def _labels(names):
    # Two dollar signs would begin and end a formula.
    return [name[:LETTERS].replace("$", r"\$") for name in names]
