"""Classes and files that break, cheat or end their process: (name, source, target)."""

LAYER = """\
import os, sys, time, threading, signal, random
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out)
        self.W_key = nn.Linear(d_in, d_out)
        self.W_value = nn.Linear(d_in, d_out)
        # built

    def forward(self, x):
        # called
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        t = x.shape[1]
        scores = q @ k.transpose(1, 2) / k.shape[-1] ** 0.5
        hidden = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        y = scores.masked_fill(hidden, -torch.inf).softmax(dim=-1) @ v
        # ends
        return y
"""


def _in(place, code):
    return LAYER.replace(f"# {place}", code)


def _called(code):
    return _in("called", code)


IN_FORWARD = {
    "exits": "os._exit(0)",
    "sys_exit": "sys.exit(0)",
    "quits": "raise SystemExit(0)",
    "replaced": "os.execv('/bin/true', ['true'])",
    "killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "terminated": "os.kill(os.getpid(), signal.SIGTERM)",
    "aborted": "os.abort()",
    "segmentation_fault": "import ctypes; ctypes.string_at(0)",
    "loops": "while True: pass",
    "sleeps": "time.sleep(1000)",
    "holds_the_lock": "import re; re.match(r'(a+)+$', 'a' * 40 + 'b')",
    "recurses": "return self.forward(x)",
    "interrupts": "raise KeyboardInterrupt",
    "memory": "torch.ones(10**7, 10**6)",
    "raises": "raise RuntimeError('no')",
    "raises_base": "raise BaseException('no')",
    "raises_generator": "raise GeneratorExit",
    "error_that_cannot_be_shown": "raise type('E', (Exception,), "
    "{'__str__': lambda e: 1 / 0})()",
    "asserts": "assert False",
    "not_implemented": "raise NotImplementedError",
    "returns_nothing": "return",
    "patches_torch": "torch.softmax = torch.Tensor.softmax = lambda *a, **k: x",
    "patches_linear": "nn.Linear.forward = lambda self, x: 0 * x",
    "writes_to_descriptor_1": "os.write(1, b'{}'); raise RuntimeError",
    "returns_number": "return 3.0",
    "returns_list": "return []",
    "returns_dictionary": "return {'y': x}",
    "returns_array": "return x.detach().numpy()",
    "returns_input": "return x",
    "returns_zeros": "return torch.zeros_like(x)",
    "returns_noise": "return torch.randn_like(x)",
    "returns_nan": "return x * float('nan')",
    "returns_view": "return x.view(-1)",
    "returns_complex": "return x.to(torch.complex64)",
    "returns_integers": "return x.long()",
    "returns_other_batch": "return x[:1]",
    "changes_input": "x.zero_()",
    "changes_weights": "self.W_query.weight.data.mul_(1.01)",
    "random_choice": "x = x if random.random() < 0.5 else 2 * x",
    "own_generator": "x = x + 0.1 * torch.randn(x.shape, "
    "generator=torch.Generator().manual_seed(time.time_ns() % 2**31))",
    "counts_calls": "self.n = getattr(self, 'n', 0) + 1; x = x * self.n",
    "deletes_itself": "del self.W_query",
    "no_gradient": "x = x.detach(); self.requires_grad_(False)",
}
FILES = {
    "file_exits": "import os\nos._exit(0)\n" + LAYER,
    "file_kills": "import os\nos.kill(os.getpid(), 9)\n" + LAYER,
    "file_is_empty": "",
    "file_is_binary": "\x00\x01",
    "file_has_a_syntax_error": LAYER + "\nclass (:\n",
    "file_has_no_class": "x = 1\n",
    "file_has_another_class": LAYER.replace("Attention", "Other"),
    "name_is_a_number": "Attention = 3\n",
    "name_is_no_module": "class Attention:\n    pass\n",
    "constructor_exits": _in("built", "os._exit(0)"),
    "constructor_loops": _in("built", "while True: pass"),
    "constructor_raises": _in("built", "raise KeyError('weights.pt')"),
    "needs_unknown_arguments": LAYER.replace("d_in, d_out):", "a, b):"),
}
HOSTILE = {name: _called(code) for name, code in IN_FORWARD.items()} | FILES
