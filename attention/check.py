"""``python -m attention.check path/to/file.py:ClassName``: see the checker.

The function is :func:`attention.checker.check`, and ``attention.check`` is that
function. Importing this module puts the module in the function's place, so the
module can be called in the same way.
"""

import sys
import types
from typing import Any

from attention.checker import Report, check
from attention.checker.commandline import main

__all__ = ["check", "main"]


class _CallableModule(types.ModuleType):
    def __call__(self, *arguments: Any, **named: Any) -> Report:
        return check(*arguments, **named)


if __name__ == "__main__":
    sys.exit(main())
sys.modules[__name__].__class__ = _CallableModule
