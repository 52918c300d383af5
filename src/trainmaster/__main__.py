"""`python -m trainmaster`."""

from trainmaster.cli import main

if __name__ == "__main__":
    main()
