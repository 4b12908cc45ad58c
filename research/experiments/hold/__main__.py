"""python -m research.experiments.hold"""

import sys

from research.experiments.hold.program import main

if __name__ == "__main__":
    sys.exit(main())
