"""Run the command line for `python -m neuraxis`."""

from neuraxis.cli import main

main()
