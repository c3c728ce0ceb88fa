"""``python -m coding_attention.grading NOTEBOOK…``: marks what a class handed in."""

import sys

from coding_attention.grading.commandline import main

if __name__ == "__main__":
    sys.exit(main())
