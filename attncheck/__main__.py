"""``python -m attncheck path/to/file.py:ClassName``: the checker as a program."""

import sys

from attncheck.commandline import main

if __name__ == "__main__":
    sys.exit(main())
