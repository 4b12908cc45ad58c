"""python -m maxflip"""

from maxflip.cli import main

main()
