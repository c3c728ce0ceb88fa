"""A plain class, and how the tests change its source."""

from attncheck.mistakes import HEADER, compiled

PLAIN = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h = n_heads
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        s = q @ k.mT / q.shape[-1] ** 0.5
        return self.proj((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))
"""


def made(source, *changes):
    """Return the class of a source with pairs (right, wrong) of its text exchanged."""
    for right, wrong in changes:
        assert right in source, right
        source = source.replace(right, wrong)
    return compiled(HEADER + source, "plain.py")
