"""Numbers as the demo shows them."""


def mib(size):
    """Bytes, with three digits."""
    return f"{size / (1 << 20):.3g} MiB"


def counted(number, what):
    return f"{number} {what}{'' if number == 1 else 's'}"
