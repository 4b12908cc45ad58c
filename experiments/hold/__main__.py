"""python -m experiments.hold"""

import sys

from experiments.hold.program import main

if __name__ == "__main__":
    sys.exit(main())
