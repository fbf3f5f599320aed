"""`python -m rlvrlab` is the `rlvr` command."""

from rlvrlab.cli import main

if __name__ == "__main__":
    main()
