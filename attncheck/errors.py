"""What can go wrong with somebody's class, and how its errors are quoted."""

import textwrap


class UnusableError(Exception):
    """What was given cannot be tested; the message says what to do."""


class Failure(Exception):  # noqa: N818 (an outcome that probes look at)
    """The module did not do what was asked.

    Attributes:
        mistake: the name of the mistake that this is.
        severity: another severity than usual, or None.
    """

    def __init__(self, mistake: str, text: str, severity: str | None = None) -> None:
        super().__init__(text)
        self.mistake = mistake
        self.severity = severity


class CallFailed(Failure):
    """It raised, or returned something else than (b, t, width).

    Attributes:
        many: whether that was for more sequences than a cache may have room for.
    """

    many = False


class CallHung(Failure):
    """It did not return. Its thread is lost, so no test can go on."""


def message(error: BaseException) -> str:
    """Return an exception's message, also where it cannot be shown."""
    try:
        return str(error)
    except Exception:
        return "its message cannot be shown"


def first_line(error: BaseException) -> str:
    """Return an exception's message on one line, shortened."""
    text = " ".join(message(error).split()).rstrip(".") or "no message"
    return textwrap.shorten(text, 200, placeholder=" …")
