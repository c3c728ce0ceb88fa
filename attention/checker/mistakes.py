"""Every mistake that the checker can name: what it means, the line, the page.

The order is the order of findings: what explains other findings comes first.
"""

from dataclasses import dataclass

SIMPLE = "02_simple_self_attention"
TRAINABLE = "03_trainable_self_attention"
CAUSAL = "04_causal_attention"
MULTI = "05_multi_head_attention"
AVERAGING = "06_averaging"
TIME = "07_where_the_time_goes"


@dataclass(frozen=True)
class Mistake:
    """One mistake: its short name, and the words for it.

    Attributes:
        name: short name, its key in :data:`attention.checker.MISTAKES`.
        title: the mistake in one line.
        means: what it means for the results.
        line: the line that is likely at fault, and what is meant instead.
        page: the page of the book to read.
        severity: "error" (results are wrong) or "warning" (a trap for later).
    """

    name: str
    title: str
    means: str
    line: str
    page: str
    severity: str = "error"


_ALL = [
    # Nothing else can be tested.
    Mistake(
        "constructor_raises",
        "The class cannot be built",
        "Its constructor raised an error, so there is nothing to test.",
        "the line of the constructor that is named above",
        TRAINABLE,
    ),
    Mistake(
        "out_of_memory",
        "It asks for more memory than there is",
        "The test uses few and short sequences. An allocation that fails here is "
        "far larger than attention needs: b · h · t · t scores.",
        "a mask or buffer with a fixed, very large size, or a sum over one axis more "
        "than meant",
        TIME,
    ),
    Mistake(
        "hangs",
        "It does not return",
        "A call on a few tokens takes well under a second. This one was stopped, and "
        "the remaining tests were not run.",
        "a loop whose condition never becomes false, or code that waits for something",
        TIME,
    ),
    Mistake(
        "slow",
        "It is too slow for all tests",
        "The remaining tests were not run, so nothing is known about them.",
        "raise time_limit, or check with smaller sizes",
        TIME,
        "warning",
    ),
    Mistake(
        "forward_raises",
        "forward raises an error",
        "The layer does not accept a tensor (b, t, d_in), so nothing could be tested.",
        "the line that is named above; print the shape of every tensor before it",
        MULTI,
    ),
    Mistake(
        "not_a_tensor",
        "forward returns no tensor",
        "A layer must return the context vectors, (b, t, d_out).",
        "the `return` of forward: is it missing?",
        TRAINABLE,
    ),
    Mistake(
        "wrong_shape",
        "The output has the wrong shape",
        "A layer must return one vector for each token of each sequence.",
        "`squeeze()` removes every axis of length 1, and `view` or `reshape` may join "
        "the wrong axes. `(b, t, d_out)` is meant",
        MULTI,
    ),
    Mistake(
        "short_inputs",
        "It fails for fewer tokens than context_length",
        "Sequences are often shorter than the longest one allowed, and the mask is "
        "as large as the longest.",
        "the mask is not cut to the input: `mask[:num_tokens, :num_tokens]` is meant",
        CAUSAL,
    ),
    Mistake(
        "some_sizes_raise",
        "It fails for some batch sizes or numbers of tokens",
        "A layer must take any number of sequences, and from one token upward.",
        "a size written as a fixed number; take b and t from `x.shape`",
        CAUSAL,
    ),
    # What the layer keeps or changes would disturb all other tests.
    Mistake(
        "weights_not_saved",
        "Weights are missing from the state dict",
        "They are neither trained nor saved, and eval() and .to() do not reach them.",
        "layers in a Python list where `nn.ModuleList` is meant, or a tensor where "
        "`nn.Parameter` or `register_buffer` is meant",
        MULTI,
    ),
    Mistake(
        "changes_input",
        "It changes its input in place",
        "Whoever calls the layer still needs x, for a residual connection for example, "
        "and now holds other numbers.",
        "an operation that ends in `_`, or `x += …`, `x *= …`, `x /= …` on the input; "
        "`x = x * …` makes a new tensor",
        CAUSAL,
    ),
    Mistake(
        "keeps_state",
        "It remembers earlier calls",
        "The same input must give the same output, whatever was computed before.",
        "a tensor kept on `self` and used in the next call: a cache without a reset?",
        TIME,
    ),
    Mistake(
        "random_in_eval",
        "It is random in eval()",
        "Dropout is meant for training alone. Predictions must not depend on luck.",
        "`F.dropout(weights, p)` drops in every mode; `F.dropout(weights, p, "
        "self.training)` or an `nn.Dropout` module is meant, and for "
        "`scaled_dot_product_attention` `dropout_p=p if self.training else 0.0`",
        CAUSAL,
    ),
    Mistake(
        "batch_first",
        "The first axis is taken for the tokens: it wants (t, b, d)",
        "The sequences of the batch attend to each other, and the tokens of a sequence "
        "do not.",
        "`nn.MultiheadAttention` without `batch_first=True`. If (t, b, d) is meant, "
        'check with `layout="tbd"`',
        MULTI,
    ),
    # Which scores are hidden.
    Mistake(
        "mask_missing",
        "The future leaks: no causal mask",
        "Every token sees all later ones. In training it reads off the token it should "
        "predict.",
        "no line hides the future; "
        "`scores.masked_fill_(mask[:t, :t], -torch.inf)` before softmax is meant, or "
        "`is_causal=True`",
        CAUSAL,
    ),
    Mistake(
        "mask_upside_down",
        "The mask is upside down: it hides the past and shows the future",
        "Each token sees itself and what comes after it.",
        "`tril` where `triu(…, diagonal=1)` is meant?",
        CAUSAL,
    ),
    Mistake(
        "mask_inverted",
        "The mask is inverted: it hides what should be visible",
        "Each token sees only what comes after it, and the last sees nothing.",
        "1 = keep taken for 1 = hide? `masked_fill` and `nn.MultiheadAttention` hide "
        "where the mask is True; `scaled_dot_product_attention` keeps there",
        CAUSAL,
    ),
    Mistake(
        "mask_hides_itself",
        "The mask hides each token from itself",
        "The first token has nothing to attend to, a fully masked row: softmax over "
        "-inf alone gives NaN.",
        "`triu(…, diagonal=0)` where `triu(…, diagonal=1)` is meant?",
        CAUSAL,
    ),
    Mistake(
        "mask_off_by_one",
        "The mask starts one too late: each token sees the next one",
        "The next token is the very one that a language model has to predict.",
        "`triu(…, diagonal=2)` where `triu(…, diagonal=1)` is meant?",
        CAUSAL,
    ),
    Mistake(
        "mask_fill_zero",
        "Hidden scores are set to 0",
        "A score of 0 is not nothing: softmax gives it the weight exp(0) = 1 before "
        "normalizing. The future leaks.",
        "`masked_fill(mask, 0)` or `scores * tril` where "
        "`masked_fill(mask, -torch.inf)` is meant",
        CAUSAL,
    ),
    Mistake(
        "mask_fill_finite",
        "Hidden scores get a finite value that still leaks",
        "Softmax compares scores. A hidden one counts as soon as the visible ones are "
        "not far above it.",
        "`masked_fill(mask, -10)` or the like where `-torch.inf` is meant",
        CAUSAL,
    ),
    Mistake(
        "mask_added_as_ones",
        "A mask of zeros and ones is added to the scores",
        "This raises the future's scores by 1 and hides nothing.",
        "`scores + mask` needs -inf, not 1, where a score is hidden; "
        "`scores.masked_fill(mask.bool(), -torch.inf)` is meant",
        CAUSAL,
    ),
    Mistake(
        "mask_after_softmax",
        "The mask comes after softmax, and the weights are not normalized again",
        "Rows no longer sum to 1, and through the sum in softmax the future still "
        "changes the output.",
        "`softmax(scores) * tril` where masking with `-torch.inf` before softmax is "
        "meant (or a division by the row sums afterwards)",
        CAUSAL,
    ),
    Mistake(
        "mask_unwanted",
        "Tokens do not see the future, although causal=False",
        "Without a mask every token sees all tokens.",
        "the line that masks. If the mask is meant, check with `causal=True`",
        CAUSAL,
    ),
    # How scores become weights.
    Mistake(
        "softmax_over_queries",
        "Softmax over the wrong axis: the queries",
        "The weights that a key gets from all queries sum to 1. Those with which a "
        "query averages the values do not.",
        "`softmax(…, dim=-2)` or `dim=1` where `dim=-1` is meant",
        SIMPLE,
    ),
    Mistake(
        "softmax_over_heads",
        "Softmax over the wrong axis: the heads",
        "Weights are normalized between heads, so no head averages the values.",
        "`softmax(…, dim=1)` where `dim=-1` is meant: scores are (b, h, t, t)",
        MULTI,
    ),
    Mistake(
        "softmax_over_batch",
        "Softmax over the wrong axis: the batch",
        "The output for one sequence depends on the others that happen to share its "
        "batch.",
        "`softmax(…, dim=0)` where `dim=-1` is meant",
        CAUSAL,
    ),
    Mistake(
        "softmax_over_everything",
        "Softmax over all scores of a sequence at once",
        "All weights together sum to 1. Each row must do so by itself.",
        "`flatten` before `softmax`; `softmax(scores, dim=-1)` is meant",
        SIMPLE,
    ),
    Mistake(
        "softmax_missing",
        "Scores are used as weights, without softmax",
        "Scores can be negative and do not sum to 1, so the result is no average.",
        "`scores @ values` where `softmax(scores, dim=-1) @ values` is meant",
        SIMPLE,
    ),
    Mistake(
        "softmax_twice",
        "Softmax is applied twice",
        "The second softmax makes all weights nearly equal, and gives hidden positions "
        "the weight exp(0) again: the future leaks.",
        "one of the two calls of `softmax`",
        SIMPLE,
    ),
    Mistake(
        "scale_missing",
        "The scores are not scaled",
        "Scores grow with √d_head, softmax saturates, and gradients vanish.",
        "`softmax(scores)` where `softmax(scores / keys.shape[-1] ** 0.5)` is meant",
        TRAINABLE,
    ),
    Mistake(
        "scale_by_d_out",
        "The scores are divided by the root of d_out, not of d_head",
        "Each dot product adds d_head products. Dividing by more makes the weights too "
        "even.",
        "`/ d_out ** 0.5` where `/ head_dim ** 0.5` is meant",
        MULTI,
    ),
    Mistake(
        "scale_by_d_in",
        "The scores are divided by the root of d_in, not of d_head",
        "The width of the input has no part in the dot product of query and key.",
        "`/ x.shape[-1] ** 0.5` where `/ keys.shape[-1] ** 0.5` is meant",
        TRAINABLE,
    ),
    Mistake(
        "scale_twice",
        "The scores are divided by d_head: scaled twice, or without the root",
        "Both come to the same: weights that are too even.",
        "`/ head_dim` where `/ head_dim ** 0.5` is meant, or queries and scores both "
        "scaled, or a scaling before `scaled_dot_product_attention`, which scales too",
        TRAINABLE,
    ),
    Mistake(
        "scale_by_d_out_no_root",
        "The scores are divided by d_out",
        "The root is missing, and the width is that of all heads together.",
        "`/ d_out` where `/ head_dim ** 0.5` is meant",
        MULTI,
    ),
    Mistake(
        "scale_multiplied",
        "The scores are multiplied by √d_head where a division is meant",
        "Softmax saturates: nearly all weight falls on one token.",
        "`* head_dim ** 0.5` where `* head_dim ** -0.5` is meant",
        TRAINABLE,
    ),
    Mistake(
        "scale_by_tokens",
        "The scores are divided by the root of the number of tokens",
        "The weights then depend on the length of the sequence.",
        "a wrong axis in the size: `scores.shape[-1]` counts tokens, "
        "`keys.shape[-1]` is the width",
        TRAINABLE,
    ),
    Mistake(
        "scale_by_heads",
        "The scores are divided by the root of the number of heads",
        "The root of each head's width is meant.",
        "`/ num_heads ** 0.5` where `/ head_dim ** 0.5` is meant; or a wrong axis in "
        "`keys.shape`",
        MULTI,
    ),
    Mistake(
        "scale_after_softmax",
        "The scaling comes after softmax",
        "It then shrinks the output, and rows sum to 1/√d_head.",
        "`softmax(scores) / keys.shape[-1] ** 0.5` where "
        "`softmax(scores / keys.shape[-1] ** 0.5)` is meant",
        TRAINABLE,
    ),
    # Heads.
    Mistake(
        "heads_attend_heads",
        "Attention runs among the heads of one token, not among tokens",
        "No token learns anything from another.",
        "`transpose(1, 2)` is missing after the split: (b, h, t, d_head) is meant, so "
        "that `@` pairs tokens",
        MULTI,
    ),
    Mistake(
        "heads_viewed",
        "Heads are mixed up: view without transpose",
        "`view` keeps the order in memory. Cut straight to (b, h, t, d_head), a head "
        "gets pieces of several tokens.",
        "`.view(b, h, t, d_head)` where `.view(b, t, h, d_head).transpose(1, 2)` is "
        "meant",
        MULTI,
    ),
    Mistake(
        "heads_interleaved",
        "Heads take every h-th number, not neighboring ones",
        "Trained from scratch this works, but weights of other classes do not fit.",
        "`.view(b, t, d_head, h)` where `.view(b, t, h, d_head)` is meant",
        MULTI,
    ),
    Mistake(
        "join_viewed",
        "Heads are joined without transposing back",
        "`view` keeps the order in memory, so a token's result gets pieces of others.",
        "`context.reshape(b, t, d_out)` where "
        "`context.transpose(1, 2).reshape(b, t, d_out)` is meant",
        MULTI,
    ),
    Mistake(
        "join_interleaved",
        "Heads are joined in the wrong order",
        "Trained from scratch this works, but weights of other classes do not fit.",
        "(b, t, h, d_head) is meant before the last `view`, not (b, t, d_head, h)",
        MULTI,
    ),
    Mistake(
        "heads_ignored",
        "num_heads has no effect: there is one head",
        "All numbers of a token go into one dot product.",
        "the split into (b, t, h, d_head) is missing",
        MULTI,
    ),
    Mistake(
        "heads_added",
        "The heads are added, not concatenated",
        "What the heads found can no longer be told apart.",
        "`sum` or `mean` where `torch.cat([…], dim=-1)` is meant",
        MULTI,
    ),
    Mistake(
        "groups_tiled",
        "Grouped heads share keys in the wrong order",
        "Trained from scratch this works, but weights of other classes do not fit.",
        "`repeat` where `repeat_interleave` is meant",
        TIME,
    ),
    # Which weights do what.
    Mistake(
        "output_projection_unused",
        "The output projection is not used",
        "Its weights exist and never take part.",
        "`return context` where `return self.out_proj(context)` is meant",
        MULTI,
    ),
    Mistake(
        "projection_mixed_up",
        "A projection is used in another's place",
        "Queries, keys and values must each come from their own weights.",
        "one of the three lines that project x",
        TRAINABLE,
    ),
    Mistake(
        "scores_transposed",
        "The scores are transposed: keys ask and queries answer",
        "Row i of the scores must hold the query i.",
        "`keys @ queries.transpose(-2, -1)` where "
        "`queries @ keys.transpose(-2, -1)` is meant",
        TRAINABLE,
    ),
    Mistake(
        "weights_transposed",
        "The attention weights are transposed",
        "Each token sums the values with the weights that others gave to it.",
        "`weights.transpose(-2, -1) @ values` where `weights @ values` is meant",
        SIMPLE,
    ),
    Mistake(
        "bias_unused",
        "The biases of query, key and value are not used",
        "They exist and never take part.",
        "`x @ W.weight.T` leaves the bias out; call the layer: `W(x)`",
        TRAINABLE,
    ),
    Mistake(
        "input_added",
        "The input is added to the output",
        "A residual connection belongs to the block around attention. With both, it is "
        "added twice.",
        "`return x + …`",
        MULTI,
    ),
    # What shows without knowing the weights.
    Mistake(
        "samples_mixed",
        "The sequences of a batch influence each other",
        "The output for a sequence must not depend on what else is in the batch.",
        "a mean, sum or softmax over axis 0, or a `reshape` that joins b with t",
        CAUSAL,
    ),
    Mistake(
        "tokens_not_mixed",
        "Tokens do not see each other at all",
        "Each output depends on its own token alone, so there is no attention.",
        "the axes of the scores: (…, t, t) is meant, not (…, h, h) or (…, d, d)",
        MULTI,
    ),
    Mistake(
        "future_leaks",
        "The future leaks",
        "An earlier token changes when a later one does. In training it reads off what "
        "it should predict.",
        "the mask: is it there, before softmax, with -inf, and the right way up? Or a "
        "`view` that mixes tokens",
        CAUSAL,
    ),
    Mistake(
        "past_unused",
        "A token does not use all of its past",
        "Each token must be able to attend to itself and everything before it.",
        "the mask hides too much, or is cut to the wrong corner",
        CAUSAL,
    ),
    Mistake(
        "not_finite",
        "The output holds NaN or infinity",
        "A row of scores that is hidden completely gives NaN in softmax; so does inf.",
        "the mask: some row has no visible position. Or a division by 0",
        CAUSAL,
    ),
    Mistake(
        "rows_do_not_sum_to_one",
        "The attention weights of a token do not sum to 1",
        "Where all tokens are equal, any average of them is the same, yet the output "
        "changes with the position.",
        "`softmax` over the wrong axis, or weights changed after softmax",
        SIMPLE,
    ),
    Mistake(
        "length_matters",
        "The output for the first tokens depends on how many follow",
        "With a causal mask the first tokens give the same result alone and followed "
        "by others.",
        "a size taken from the number of tokens, or a mask cut to the wrong corner",
        CAUSAL,
    ),
    # Training.
    Mistake(
        "dropout_on_scores",
        "Dropout is applied to the scores, before softmax",
        "A score of 0 is not a dropped weight: it still counts exp(0). And a dropped "
        "-inf becomes NaN.",
        "`softmax(dropout(scores))` where `dropout(softmax(scores))` is meant",
        CAUSAL,
    ),
    Mistake(
        "dropout_not_rescaled",
        "Dropout does not rescale what it keeps",
        "On average, outputs in training differ in size from those in eval().",
        "a mask of zeros and ones alone; divide by 1 - p, as `nn.Dropout` does",
        CAUSAL,
    ),
    Mistake(
        "dropout_unused",
        "The dropout argument has no effect",
        "In training two calls give the same output.",
        "`self.dropout(attn_weights)` is missing, or its result is not assigned",
        CAUSAL,
        "warning",
    ),
    Mistake(
        "no_gradient",
        "No gradient flows through the layer",
        "Nothing before or inside the layer can learn.",
        "`detach()`, `.data`, `torch.no_grad()` or a way through NumPy in forward",
        TRAINABLE,
    ),
    Mistake(
        "backward_raises",
        "The backward pass raises an error",
        "The layer cannot be trained.",
        "an operation in place on a tensor that the gradient still needs",
        CAUSAL,
    ),
    Mistake(
        "gradient_missing",
        "Gradients do not reach a parameter",
        "It keeps its first value forever.",
        "the parameter is never used, or `detach()`, `.data` or `torch.no_grad()` cuts "
        "it off. A mask belongs in `register_buffer`, not into `nn.Parameter`",
        TRAINABLE,
    ),
    # Storage, devices, numbers of other widths.
    Mistake(
        "state_dict_changes",
        "A call changes the state dict",
        "A checkpoint saved afterwards does not load into a new instance.",
        "`register_buffer` or a new parameter in forward; it belongs in `__init__`, "
        "or for a cache: `persistent=False`",
        CAUSAL,
    ),
    Mistake(
        "stays_behind",
        "A tensor does not follow .to(device)",
        "On a GPU the layer stops with an error about two devices.",
        "`self.mask = …` where `self.register_buffer('mask', …)` is meant, or a tensor "
        "made in forward without `device=x.device`",
        CAUSAL,
    ),
    Mistake(
        "dtype_stays_behind",
        "It fails in another dtype",
        "Models are run in float16 and bfloat16 to save memory.",
        "a tensor in a fixed dtype, or a fill value such as -1e9 that float16 cannot "
        "hold; use a buffer and `-torch.inf`",
        CAUSAL,
    ),
    Mistake(
        "dtype_changes",
        "The output has another dtype than the input",
        "The next layer gets a dtype that its weights do not have.",
        "a tensor in a fixed dtype, or `.float()` without the way back",
        CAUSAL,
        "warning",
    ),
    Mistake(
        "overflows",
        "Large scores overflow to NaN",
        "exp overflows above 88 in float32 and above 11 in float16.",
        "`exp(s) / exp(s).sum()` where `torch.softmax` is meant, which subtracts the "
        "largest score first",
        SIMPLE,
    ),
    Mistake(
        "widths_mixed_up",
        "It works only if d_in equals d_out",
        "The class takes both, so both must be used in the right places.",
        "`nn.Linear(d_out, d_out)` or `view(b, t, d_in)` with the wrong one of the two",
        TRAINABLE,
    ),
    Mistake(
        "too_many_tokens_accepted",
        "More tokens than context_length are accepted without an error",
        "Nobody notices that a sequence is longer than the layer was made for.",
        "a check is missing: raise ValueError if `x.shape[1] > context_length`",
        CAUSAL,
        "warning",
    ),
    Mistake(
        "too_many_tokens_cut",
        "Tokens beyond context_length are dropped silently",
        "The output has fewer tokens than the input.",
        "`x = x[:, :context_length]`; raise ValueError",
        CAUSAL,
        "warning",
    ),
    # Nothing fits.
    Mistake(
        "differs",
        "The output differs from scaled dot-product attention",
        "None of the mistakes that the checker knows gives this output. If the layer "
        "does more than attention on purpose (rotary positions, a window, another "
        "norm), give the right answer as reference=, or reference=False.",
        "compare step by step with `scaled_dot_product_attention`",
        MULTI,
    ),
    Mistake(
        "differs_from_reference",
        "The output differs from the reference",
        "With the same weights and the same input both must agree.",
        "compare both step by step",
        MULTI,
    ),
]

MISTAKES = {mistake.name: mistake for mistake in _ALL}
ORDER = {name: place for place, name in enumerate(MISTAKES)}

# What follows from a mistake that the output has been matched to exactly.
SYMPTOMS = {
    "samples_mixed",
    "tokens_not_mixed",
    "future_leaks",
    "past_unused",
    "not_finite",
    "rows_do_not_sum_to_one",
    "length_matters",
}
