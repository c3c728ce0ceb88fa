"""Storage, devices, numbers of other widths."""

from attncheck.mistakes.kinds import CAUSAL, SIMPLE, TRAINABLE, Mistake

STORAGE = [
    Mistake(
        "state_dict_changes",
        "ATT801",
        "A call changes the state dict",
        "A checkpoint saved afterwards does not load into a new instance.",
        "`register_buffer` or a new parameter in forward; it belongs in `__init__`, "
        "or for a cache: `persistent=False`",
        CAUSAL,
    ),
    Mistake(
        "stays_behind",
        "ATT802",
        "A tensor does not follow .to(device)",
        "On a GPU the layer stops with an error about two devices.",
        "`self.mask = …` where `self.register_buffer('mask', …)` is meant, or a tensor "
        "made in forward without `device=x.device`",
        CAUSAL,
    ),
    Mistake(
        "dtype_stays_behind",
        "ATT803",
        "It fails in another dtype",
        "Models are run in float16 and bfloat16 to save memory.",
        "a tensor in a fixed dtype, or a fill value such as -1e9 that float16 cannot "
        "hold; use a buffer and `-torch.inf`",
        CAUSAL,
    ),
    Mistake(
        "dtype_changes",
        "ATT804",
        "The output has another dtype than the input",
        "The next layer gets a dtype that its weights do not have.",
        "a tensor in a fixed dtype, or `.float()` without the way back",
        CAUSAL,
        "warning",
    ),
    Mistake(
        "overflows",
        "ATT805",
        "Large scores overflow to NaN",
        "exp overflows above 88 in float32 and above 11 in float16.",
        "`exp(s) / exp(s).sum()` where `torch.softmax` is meant, which subtracts the "
        "largest score first",
        SIMPLE,
    ),
    Mistake(
        "widths_mixed_up",
        "ATT806",
        "It works only if d_in equals d_out",
        "The class takes both, so both must be used in the right places.",
        "`nn.Linear(d_out, d_out)` or `view(b, t, d_in)` with the wrong one of the two",
        TRAINABLE,
    ),
    Mistake(
        "too_many_tokens_accepted",
        "ATT807",
        "More tokens than context_length are accepted without an error",
        "Nobody notices that a sequence is longer than the layer was made for.",
        "a check is missing: raise ValueError if `x.shape[1] > context_length`",
        CAUSAL,
        "warning",
    ),
    Mistake(
        "too_many_tokens_cut",
        "ATT808",
        "Tokens beyond context_length are dropped silently",
        "The output has fewer tokens than the input.",
        "`x = x[:, :context_length]`; raise ValueError",
        CAUSAL,
        "warning",
    ),
    Mistake(
        "low_precision",
        "ATT809",
        "Part of it is computed with fewer digits than its input has",
        "The output moves in steps, as it does with the few digits of float16.",
        "`.half()` or `.bfloat16()` in forward; a layer keeps the dtype of "
        "its input, and `torch.autocast` lowers it where that is wanted",
        CAUSAL,
    ),
]
