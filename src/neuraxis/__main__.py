"""`python -m neuraxis` is the command line."""

from neuraxis.cli import main

main()
