"""What keeps the other tests from running, or disturbs all of them."""

from attncheck.mistakes.kinds import CAUSAL, MULTI, TIME, TRAINABLE, Mistake

RUNNING = [
    Mistake(
        "constructor_raises",
        "ATT101",
        "The class cannot be built",
        "Its constructor raised an error, so there is nothing to test.",
        "the line of the constructor that is named above",
        TRAINABLE,
    ),
    Mistake(
        "out_of_memory",
        "ATT102",
        "It asks for more memory than there is",
        "The test uses few and short sequences. An allocation that fails here is "
        "far larger than attention needs: b · h · t · t scores.",
        "a mask or buffer with a fixed, very large size, or a sum over one axis more "
        "than meant",
        TIME,
    ),
    Mistake(
        "hangs",
        "ATT103",
        "It does not return",
        "A call on a few tokens takes well under a second. This one was stopped, and "
        "the remaining tests were not run.",
        "a loop whose condition never becomes false, or code that waits for something",
        TIME,
    ),
    Mistake(
        "slow",
        "ATT104",
        "It is too slow for all tests",
        "The remaining tests were not run, so nothing is known about them.",
        "raise time_limit, or check with smaller sizes",
        TIME,
    ),
    Mistake(
        "forward_raises",
        "ATT105",
        "forward raises an error",
        "The layer does not accept a tensor (b, t, d_in), so nothing could be tested.",
        "the line that is named above; print the shape of every tensor before it",
        MULTI,
    ),
    Mistake(
        "not_a_tensor",
        "ATT106",
        "forward returns no tensor",
        "A layer must return the context vectors, (b, t, d_out).",
        "the `return` of forward: is it missing?",
        TRAINABLE,
    ),
    Mistake(
        "wrong_shape",
        "ATT107",
        "The output has the wrong shape",
        "A layer must return one vector for each token of each sequence.",
        "`squeeze()` removes every axis of length 1, and `view` or `reshape` may join "
        "the wrong axes. `(b, t, d_out)` is meant",
        MULTI,
    ),
    Mistake(
        "short_inputs",
        "ATT108",
        "It fails for fewer tokens than context_length",
        "Sequences are often shorter than the longest one allowed, and the mask is "
        "as large as the longest.",
        "the mask is not cut to the input: `mask[:num_tokens, :num_tokens]` is meant",
        CAUSAL,
    ),
    Mistake(
        "some_sizes_raise",
        "ATT109",
        "It fails for some batch sizes or numbers of tokens",
        "A layer must take any number of sequences, and from one token upward.",
        "a size written as a fixed number; take b and t from `x.shape`",
        CAUSAL,
    ),
    Mistake(
        "weights_not_saved",
        "ATT110",
        "Weights are missing from the state dict",
        "They are neither trained nor saved, and eval() and .to() do not reach them.",
        "layers in a Python list where `nn.ModuleList` is meant, or a tensor where "
        "`nn.Parameter` or `register_buffer` is meant",
        MULTI,
    ),
    Mistake(
        "changes_input",
        "ATT111",
        "It changes its input in place",
        "Whoever calls the layer still needs x, for a residual connection for example, "
        "and now holds other numbers.",
        "an operation that ends in `_`, or `x += …`, `x *= …`, `x /= …` on the input; "
        "`x = x * …` makes a new tensor",
        CAUSAL,
    ),
    Mistake(
        "keeps_state",
        "ATT112",
        "It remembers earlier calls",
        "The same input must give the same output, whatever was computed before.",
        "a tensor kept on `self` and used in the next call: a cache without a reset?",
        TIME,
    ),
    Mistake(
        "random_in_eval",
        "ATT113",
        "It is random in eval()",
        "Dropout is meant for training alone. Predictions must not depend on luck.",
        "`F.dropout(weights, p)` drops in every mode; `F.dropout(weights, p, "
        "self.training)` or an `nn.Dropout` module is meant, and for "
        "`scaled_dot_product_attention` `dropout_p=p if self.training else 0.0`",
        CAUSAL,
    ),
    Mistake(
        "batch_first",
        "ATT114",
        "The first axis is taken for the tokens: it wants (t, b, d)",
        "The sequences of the batch attend to each other, and the tokens of a sequence "
        "do not.",
        "`nn.MultiheadAttention` without `batch_first=True`. If (t, b, d) is meant, "
        'check with `layout="tbd"`',
        MULTI,
    ),
    Mistake(
        "changes_settings",
        "ATT115",
        "It changes settings of the whole process",
        "What runs next meets another default dtype, folder or environment.",
        "`torch.set_default_dtype`, `torch.set_default_device`, `os.chdir` or "
        "`os.environ` in the class",
        CAUSAL,
        "warning",
    ),
]
