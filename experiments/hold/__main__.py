"""python -m experiments.hold"""

from experiments.hold.program import main

if __name__ == "__main__":
    main()
