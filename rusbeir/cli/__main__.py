"""`python -m rusbeir.cli`: the command line without its script."""

from rusbeir.cli.main import main

main()
