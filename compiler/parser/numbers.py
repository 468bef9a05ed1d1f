"""Numbers and units of time as other languages write them, with what to write here."""

from __future__ import annotations

import re

__all__ = ["SPELLINGS", "runs_into"]

SPELLINGS = {
    **dict.fromkeys(("msec", "msecs", "millis"), "ms"),
    **dict.fromkeys(("sec", "secs"), "seconds"),
    **dict.fromkeys(("min", "mins"), "minutes"),
    **dict.fromkeys(("hr", "hrs"), "hours"),
}
"""Units of time in other languages, with the words for them."""
_POWERS = {"k": 3, "kb": 3, "m": 6, "mb": 6, "g": 9, "gb": 9, "b": 9, "bn": 9}


def runs_into(number: str, rest: str) -> tuple[str, str, str | None]:
    """Message and help for a number that is directly followed by `rest`, which is not a unit of time.

    Also the text that certainly belongs in its place, if there is one.
    """
    lower, written = rest.lower(), number + rest
    new = None
    message = f"`{written}` is not a number: a number has no suffix"
    if re.fullmatch(r"(?:_[0-9]+)+", rest):
        message, new = f"`{written}` is not a number: its digits cannot be grouped", written.replace("_", "")
    elif number == "0" and re.fullmatch(r"x[0-9a-f]+", lower):
        message, new = f"`{written}` is not a number: digits are decimal", str(int(rest[1:], 16))
    elif lower in SPELLINGS:
        message, new = f"the number `{number}` runs into `{rest}`", f"{number} {SPELLINGS[lower]}"
    elif lower in _POWERS and number.isdigit():
        new = f"{number}{'0' * _POWERS[lower]}"
    elif lower == "l":
        return message, f"write `{number}`; `cast({number} as bigint)` gives it a type", number
    elif lower in ("d", "f", "bd"):
        return message, f"write `{number}`, a decimal, or `{number}e0`, a double", None
    else:
        help = f"put a space or a sign between the two; a name that begins with a digit is written `` `{written}` ``"
        return f"the number `{number}` runs into `{rest}`", help, None
    return message, f"write `{new}`", new
