"""Words that come from outside, made fit to be shown."""


def one_line(text: str) -> str:
    r"""The text, with what would move the cursor or break the line written out.

    >>> print(one_line("cat\ndog\x1b[0m naïve"))
    cat\ndog\x1b[0m naïve
    """
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def counted(number: int, one: str) -> str:
    """
    >>> counted(1, "epoch"), counted(1200, "epoch")
    ('1 epoch', '1,200 epochs')
    """
    return f"{number:,} {one if number == 1 else one + 's'}"
