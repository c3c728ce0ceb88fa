"""What programs and checkpoints rely on: arguments, and names and shapes of weights.

    python -m tests.attention.promises

writes down what a new public name promises. What is written stays as it is: seeds,
checkpoints and programs rest on it. If a promise has to be broken after all, take it
out of ``promises.json`` by hand, and say so in the changelog.
"""

import json
from pathlib import Path

from tests.attention.public import FUNCTIONS, LAYERS, WITH_BIAS, arguments, make

FILE = Path(__file__).with_name("promises.json")
REQUIRED = "required"
MISSING = "{} is not written down yet. Run: python -m tests.attention.promises"


def written():
    return json.loads(FILE.read_text(encoding="utf-8"))


def promise(name):
    """Give what ``name`` promises now, as it is written."""
    promised = {
        "arguments": {
            n: REQUIRED if p.default is p.empty else repr(p.default)
            for n, p in arguments(name).items()
        }
    }
    if name in LAYERS:
        biases = (False, True) if name in WITH_BIAS else (None,)
        promised["state dict"] = {
            f"qkv_bias={bias}" if bias is not None else "": {
                key: str(tuple(value.shape))
                for key, value in _state(name, bias).items()
            }
            for bias in biases
        }
    return promised


def _state(name, bias):
    return make(name, **({} if bias is None else {"qkv_bias": bias})).state_dict()


def main():
    """Write what is missing; leave what is there."""
    kept = written() if FILE.exists() else {}
    new = {n: promise(n) for n in (*FUNCTIONS, *LAYERS) if n not in kept}
    text = json.dumps(kept | new, indent=1, ensure_ascii=False)
    FILE.write_text(text + "\n", encoding="utf-8")
    print(f"{FILE.name}: {', '.join(new) or 'nothing'} is new.")


if __name__ == "__main__":
    main()
