"""`python -m riffle` and the script `riffle` become the command."""
import os
import sys

from riffle import command_path


def main():
    command = command_path()
    os.execv(command, [command, *sys.argv[1:]])


if __name__ == "__main__":
    main()
