"""Run code and hold each comment that tells a shape against the tensors of its line.

`traced` rewrites a program so that every statement with a comment such as
`# (t, d_in) @ (d_in, t) -> (t, t)` hands its tensors to a `Reader`. The last shape is
that of the result; those before `->` or `@` must be among the tensors on the line.

Within a call, a letter has one size: that of the variable or the attribute of its name
where there is one, and else what the first comment of the call makes it. On a page,
letters travel with the tensors: a line goes by the letters of those it reads. Where
it reads none with that letter, the letter may get a new size, but not the size of
another letter of the page, lest one letter stand for the other: `with t = 4` says so.
"""

import ast
import io
import re
import tokenize
from itertools import combinations
from types import GeneratorType

LATER = "later"  # where sums and products wait for the sizes of their letters
SHAPE = re.compile(r"(?<!\w)\(([^()]*,[^()]*)\)")
PRODUCT = re.compile(r"\(([^()]*)\) @ \(([^()]*)\)(?! @)(?:\s*->\s*\(([^()]*)\))?")
OF_WEIGHTS = re.compile(r"\((?:t, d_\w+|d_\w+, t)\)\.T")
ENTRY = re.compile(r"…|\.\.\.|(?:\d+ )?\w+(?: ?[·*/+-] ?\w+)*")
JOINED = re.compile(r"\)\s*(?:@|\+|\*|/|\||\.T)")
EACH = re.compile(r"\) each\b")
WITH = re.compile(r"\b(\w+) = (\d+)")
ATTRIBUTES = {"h": "num_heads", "d_head": "head_dim"}
WIDTHS = {"d", "d_in", "d_out", "d_k", "d_v", "d_head", "d_model"}
TOKENS = {"t", "t_q", "t_k", "n"}
LETTERS = {
    "b", "t", "t_q", "t_k", "d", "d_in", "d_out", "d_k", "d_v", "d_head", "d_model",
    "h", "h_kv", "n",
}  # fmt: skip


def shapes(text):
    """The shapes in a comment, each a list of entries."""
    for match in SHAPE.finditer(text):
        entries = [e.strip() for e in match[1].split(",")]
        entries = entries[:-1] if entries[-1] == "" else entries
        if entries and all(ENTRY.fullmatch(e) for e in entries):
            yield entries


def torn(text):
    """Say what does not fit in shapes, or in those of a product, in whatever sizes."""
    told = list(shapes(text))
    if {"t_q", "t_k", "t"} <= {entry for entries in told for entry in entries}:
        return "t_q and t_k are told apart, so t is neither"
    if transposed := OF_WEIGHTS.search(text):
        return f"{transposed[0]}: weights have no tokens"
    for match in SHAPE.finditer(text):
        operand = text[: match.start()].rstrip().endswith("@")
        for entries in shapes(match[0]):
            if why := _misplaced(entries, operand):
                return f"({', '.join(entries)}): {why}"
    for entries in told:
        if len(entries) > 2 and entries[0] == entries[1]:
            return f"{entries[0]} counts batches and tokens"
        widths = [entry for entry in entries if entry in WIDTHS]
        if entries[0] == "b" and len(widths) > 1:
            return f"a batch has two widths, {' and '.join(widths)}"
    for match in PRODUCT.finditer(text):
        a, b, c = (
            [e.strip() for e in (part or "").split(",") if e.strip()]
            for part in match.groups()
        )
        if len(a) > 1 and len(b) > 1 and a[-1] != b[-2]:
            return f"{a[-1]} is multiplied with {b[-2]}"
        if len(a) > 1 and len(b) > 1 and len(c) > 1 and c[-2:] != [a[-2], b[-1]]:
            return f"({a[-2]}, {b[-1]}) became ({c[-2]}, {c[-1]})"
    return ""


def _misplaced(entries, operand):
    # What the legend of letters does not allow, whatever the sizes are.
    if {"t_q", "t_k"} & {*entries} and "t" in entries:
        return "t_q and t_k are told apart, so t is neither"
    if len(entries) == 4 and entries[0] == "t":
        return "four axes begin with a batch"
    for entry in entries:
        letters = {*re.findall(r"\w+", entry)}
        if letters & {"t", "t_q", "t_k"} and letters & {*WIDTHS, "h"}:
            return f"{entry} is neither a width nor a number of tokens"
    if (
        len(entries) > 1
        and entries[-1] in TOKENS
        and "d_" in entries[-2]
        and not operand
    ):
        return f"{entries[-2]} stands before the tokens"
    at = [i for i, entry in enumerate(entries) if "d_in" in entry]
    if at and not _has_its_place(entries, at[0], operand):
        return "d_in stands behind tokens, or in a matrix of weights"
    return ""


def _has_its_place(entries, at, operand):
    # Of d_in: last behind tokens, transposed in a product, or beside another width.
    others = entries[:at] + entries[at + 1 :]
    if entries[at] != "d_in":
        return False
    if at == len(entries) - 1 and (not others or others[-1] in TOKENS):
        return "h" not in others
    if at == len(entries) - 2 and others[-1] in TOKENS:
        return operand and others[:-1] in ([], ["b"], ["…"])
    if len(others) == 1 and others[0].isdigit():
        return at == 1
    return others in (["d_in"], ["d_out"], ["d_k"], ["h · d_head"], ["d_out / ranks"],
                      ["h", "d_head"])  # fmt: skip


def comments(source):
    """Comments that tell a shape, by the line of code that each speaks of."""
    lines, found = source.split("\n"), {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and any(shapes(token.string)):
            line = token.start[0]
            alone = token.line.strip().startswith("#")
            while alone and lines[line - 1].strip().startswith("#"):
                line += 1
            above = f"{found[line]} -> " if line in found else ""
            found[line] = above + token.string
    return found


ENOUGH = 50  # readings of one line: a loop that trains has shown its shapes by then


class Reader:
    """Compares what comments tell with what lines make, and keeps what is wrong."""

    def __init__(self, name, sizes=()):
        self.name, self.sizes = name, dict(sizes)
        self.told, self.read, self.bound, self.space = {}, {}, {}, {}
        self._seen, self._letters, self._wrong, self._twins = {}, {}, {}, {}

    def wrong(self, share=1 / 2):
        """What is wrong in this share of its runs or more, and what never ran.

        A test that gives a layer what it must refuse makes a few lines wrong.
        """
        for key, text in self.told.items():
            found = self._wrong.get(key, [])
            if why := torn(text):
                yield f"{self.name}, {key[0]}, line {key[1]}: {text}: {why}"
            if ("d_in", "t") in self._twins.get(key, ()):
                yield f"{self.name}, {key[0]}, line {key[1]}: {text}: d_in is t"
            if key not in self.read:
                yield f"{self.name}, {key[0]}, line {key[1]}: {text} was never read"
            elif len(found) >= share * self.read[key]:
                yield found[0]

    def twins(self):
        """Where two letters of a comment had one size whenever its line ran.

        Then one may stand for the other. A line that runs once tells too little.
        """
        for key, pairs in self._twins.items():
            if self.read[key] > 1 and pairs:
                yield f"{self.name}, {key[0]}, line {key[1]}: {self.told[key]}: {pairs}"

    tensors = staticmethod(lambda values: _tensors(values))

    def seen(self, key, value, named):
        """Keep a tensor of the line, and whether a name held it before."""
        if _is_tensor(value) and self.read.get(key, 0) < ENOUGH:
            self._seen.setdefault(key, []).append((value if named else None, value))
        return value

    def said(self, key, value, names, bound):
        """Hold the comment against the value of a statement."""
        value = list(value) if isinstance(value, GeneratorType) else value
        if self.read.get(key, 0) == ENOUGH:
            return value
        told, seen = self.told[key], self._seen.pop(key, [])
        value_ = value.unbind() if EACH.search(told) and _is_tensor(value) else value
        page = names.get("__bound__") is self.bound
        bound = bound if not page else self._travelled(named for named, _ in seen)
        operands, results = _parts(told)
        if not _tensors(value_):  # printed, or kept in an object
            operands, results = operands + results, []
        makes = _pairs(results, value_)
        # What the line makes is none of what it reads.
        tensors = [x for named, x in seen if named is not None or x is not value]
        known = self.sizes | _from(self.space, True) | _from(names, page)
        known |= {letter: int(size) for letter, size in WITH.findall(told)}
        ways = _agree(
            operands, makes, tensors, known | {LATER: _of_heads(names)}, dict(bound)
        )
        found = next((w for w in ways if not page or self._own(w, bound, known)), None)
        self.read[key] = self.read.get(key, 0) + 1
        if found is None:
            made = [tuple(v.shape) for v in _tensors(value_)]
            self._wrong.setdefault(key, []).append(
                f"{self.name}, {key[0]}, line {key[1]}: {told} but the line reads "
                f"{[tuple(v.shape) for v in tensors]} and makes {made}; {bound | known}"
            )
            return value
        bound.update(found)
        same = _same(told, bound | known)
        self._twins[key] = self._twins.get(key, same) & same
        if page:
            letters = found | {n: v for n, v in known.items() if n in LETTERS}
            self.bound = names["__bound__"]
            for letter, size in letters.items():
                self.bound.setdefault(letter, size)
            for tensor in [*tensors, *_tensors(value_)]:
                self._letters[id(tensor)] = tensor, letters
        return value

    def _travelled(self, tensors):
        # The letters of the tensors that a line reads, where they agree.
        found, torn = {}, set()
        for tensor in tensors:
            for letter, size in self._letters.get(id(tensor), (None, {}))[1].items():
                if found.setdefault(letter, size) != size:
                    torn.add(letter)
        return {letter: size for letter, size in found.items() if letter not in torn}

    def _own(self, found, bound, known):
        # No letter has got the size of another one, which the comment does not name.
        new = {n: v for n, v in found.items() if n not in bound and n not in known}
        others = {v for n, v in (self.bound | bound).items() if n not in found}
        return all(self.bound.get(n, v) == v or v not in others for n, v in new.items())


def _same(told, sizes):
    letters = sorted(
        {e for shape in shapes(told) for e in shape} & LETTERS & set(sizes)
    )
    return {(a, b) for a, b in combinations(letters, 2) if sizes[a] == sizes[b]}


def _is_tensor(value):
    return type(value).__name__ in ("Tensor", "Parameter", "Buffer")


def _tensors(value):
    parts = value if isinstance(value, tuple | list) else [value]
    return [part for part in parts if _is_tensor(part)]


def _from(names, page):
    # The sizes that the code itself has a name for. On a page, `t` may count anything.
    known = {n: v for n, v in names.items() if type(v) is int}
    if page:
        return {n: v for n, v in known.items() if n not in LETTERS}
    layer = vars(names["self"]) if hasattr(names.get("self"), "__dict__") else {}
    for letter in ("d_in", "d_out", *ATTRIBUTES):
        size = layer.get(ATTRIBUTES.get(letter, letter))
        if type(size) is int:
            known.setdefault(letter, size)
    return known


def _of_heads(names):
    # Of a list of heads, which a product such as h · d_head speaks of.
    for layer in (names.get("self"), names.get("wrapper")):
        heads = getattr(layer, "heads", None)
        if type(heads).__name__ == "ModuleList":
            width = heads[0].W_query.out_features
            return {"h": len(heads), "d_head": width, "d_out": width}
    return {}


def _parts(comment):
    # (shapes that must be on the line, shapes of the result)
    *before, last = re.split(r"->|, back to ", comment)
    operands = [shape for text in before for shape in shapes(text)]
    if not before and JOINED.search(last):
        return list(shapes(last)), []
    return operands, list(shapes(last))


def _pairs(results, value):
    # (shape, tensor) of the results; None where their numbers differ.
    made = _tensors(value)
    if not results:
        return []
    if len(results) == 1 and made:
        return [(results[0], tensor) for tensor in made]
    if len(results) == len(made):
        return list(zip(results, made, strict=True))
    return None


def _agree(operands, makes, seen, known, bound):
    if makes is None:
        return
    # Every way of giving letters their sizes in which all shapes of a comment are true.
    if operands:
        for tensor in seen:
            found = _matched(operands[0], tensor.shape, known, bound)
            if found is not None:
                yield from _agree(operands[1:], makes, seen, known, found)
        return
    for shape, tensor in makes:
        bound = _matched(shape, tensor.shape, known, bound)
        if bound is None:
            return
    bound = _solved(bound, known)
    if bound is not None:
        yield bound


def _solved(bound, known):
    # The sums and products whose letters other shapes of the comment had to tell.
    bound = dict(bound)
    for code, size in bound.pop(LATER, ()):
        letters = {*re.findall(r"[^\W\d]\w*", code)} - {*known, *bound}
        bound |= {n: known[LATER][n] for n in letters & {*known[LATER]}}
        unknown = [n for n in letters if n not in bound]
        if len(unknown) > 1:
            return None
        for letter in unknown:
            bound[letter] = next(
                (n for n in range(1, 4 * size + 8)
                 if eval(code, {}, {**bound, **known, letter: n}) == size), None,
            )  # fmt: skip
            if bound[letter] is None:
                return None
        if eval(code, {}, {**bound, **known}) != size:
            return None
    return bound


def _matched(entries, sizes, known, bound):
    bound = dict(bound)
    if any(e in ("…", "...") for e in entries):
        at = next(i for i, e in enumerate(entries) if e in ("…", "..."))
        after = len(entries) - at - 1
        if len(sizes) < at + after:
            return None
        sizes = [*sizes[:at], *sizes[len(sizes) - after :]]
        entries = entries[:at] + entries[at + 1 :]
    if len(entries) != len(sizes):
        return None
    for entry, size in zip(entries, sizes, strict=True):
        code = re.sub(r"(?<=\d) (?=\w)", "*", entry.replace("·", "*"))
        letters = {*re.findall(r"[^\W\d]\w*", code)}
        unknown = [n for n in letters if n not in known and n not in bound]
        if unknown == [entry]:
            bound[entry] = size
        elif unknown:
            bound[LATER] = [*bound.get(LATER, ()), (code, size)]
        elif eval(code, {}, {**bound, **known}) != size:
            return None
    return bound


class _Rewrite(ast.NodeTransformer):
    def __init__(self, name, told):
        self.name, self.told, self.key = name, told, None

    def _on(self, first, last):
        # The comments between two lines, as one that speaks of the statement there.
        keys = [k for k in self.told if first <= k[1] <= last]
        for more in keys[1:]:
            self.told[keys[0]] += self.told.pop(more)
        return keys[0] if keys else None

    def visit(self, node):
        if isinstance(node, ast.stmt):
            return self._statement(node)
        if isinstance(node, ast.JoinedStr) or (
            self.key is None and isinstance(node, ast.expr)
        ):
            return node
        node = super().visit(node)
        kinds = ast.Name | ast.Attribute | ast.Call | ast.BinOp | ast.Subscript
        if isinstance(node, kinds) and isinstance(
            getattr(node, "ctx", ast.Load()), ast.Load
        ):
            named = isinstance(node, ast.Name | ast.Attribute)
            return _call("seen", self.key, node, ast.Constant(named))
        return node

    def visit_Call(self, node):
        if isinstance(node.func, ast.Attribute):
            node.func.value = self.visit(node.func.value)
        node.args = [self.visit(a) for a in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        return node

    def visit_keyword(self, node):
        node.value = self.visit(node.value)
        return node

    def _statement(self, node):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            return self._definition(node)
        if hasattr(node, "body"):  # if, for, with, try: their statements alone
            return self.generic_visit(node)
        value = getattr(node, "value", None)
        if value is None or isinstance(value, ast.Constant):
            if value is not None:
                self._stub(node.lineno, node)
            return node
        self.key = self._on(node.lineno, node.end_lineno)
        if self.key is None:
            return node
        sizes = (
            isinstance(node.value, ast.Tuple)
            and isinstance(getattr(node, "targets", [None])[0], ast.Name)
            and not EACH.search(self.told[self.key])
        )
        if sizes or getattr(node.value, "attr", None) == "shape":  # for the line below
            self.told[self.name, node.lineno + 1] = self.told.pop(self.key)
            self.key = None
            return node
        node.value, after = self.visit(node.value), None
        if isinstance(node, ast.AugAssign):
            target = ast.parse(ast.unparse(node.target), mode="eval").body
            after = ast.Expr(_said(self.key, target))
        else:
            node.value = _said(self.key, node.value)
        self.key = None
        return [node, after] if after else node

    def _stub(self, first, node):
        # What a reader has to write yet: its solution keeps the promise.
        if isinstance(node.value, ast.Constant) and node.value.value is None:
            key = self._on(first, node.end_lineno)
            self.told.pop(key, None)

    def _definition(self, node):
        first = node.body[0].lineno
        if isinstance(node.body[0], ast.Return):
            self._stub(node.lineno, node.body[0])
        key = self._on(node.lineno, first - 1)
        node = self.generic_visit(node)
        if isinstance(node, ast.ClassDef):
            return node
        start = ast.parse("__bound__ = {}").body
        if "->" in self.told.get(key, ""):
            result = (*key, "result")
            self.told[result] = "# " + self.told[key].split("->")[-1]
            for one in ast.walk(node):
                if isinstance(one, ast.Return):
                    one.value = _said(result, one.value)
        operands, results = _parts(self.told.get(key, ""))
        given = operands if "->" in self.told.get(key, "") else results
        self.told.pop(key, None)
        if given:  # the shapes of the parameters, in order
            names = ", ".join(a.arg for a in node.args.args if a.arg != "self")
            told = ", ".join(f"({', '.join(s)},)" for s in given)
            self.told[key] = told
            first = f"__reader__.tensors([{names}])[:{len(given)}]"
            tensors = ast.parse(first, mode="eval").body
            start.append(ast.Expr(_said(key, tensors)))
        docstring = node.body[:1] if ast.get_docstring(node) is not None else []
        node.body = [*docstring, *start, *node.body[len(docstring) :]]
        return node


def _call(what, key, value, *more):
    reader = ast.Attribute(ast.Name("__reader__", ast.Load()), what, ast.Load())
    return ast.Call(reader, [ast.Constant(key), value, *more], [])


def _said(key, value):
    more = ast.parse("[locals(), __bound__]", mode="eval").body.elts
    return _call("said", key, value, *more)


def run(source, name, space, reader):
    """Run a program in a namespace; the reader sees its comments and its tensors."""
    told = {(name, line): text for line, text in comments(source).items()}
    tree = _Rewrite(name, told).visit(ast.parse(source))
    reader.told |= told
    reader.space = space
    space |= {"__reader__": reader, "__bound__": reader.bound}
    exec(compile(ast.fix_missing_locations(tree), name, "exec"), space)
    return space
