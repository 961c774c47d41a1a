"""`python -m eoh_esopt`: the command line."""

from eoh_esopt.cli.main import main

if __name__ == "__main__":
    main()
