"""What a secret is: the names of options that hold one, and what it looks like inside a text.

The compiler refuses secrets that are written into a topology; errors, logs and Spark's own pages leave them out.
"""

from __future__ import annotations

import re

__all__ = ["HIDDEN", "SECRET_NAME", "SECRET_OF_URL", "SECRET_TEXT", "instead_of_secret", "is_secret", "masked"]

HIDDEN = "..."
"""What stands in the place of a secret."""

_SECRET = (
    r"(?:password|passwd|passphrase|pwd|secret|secret[._-]?(?:access[._-]?)?key|token"
    r"|(?:api|encryption|storage|signing|sse)[._-]?key|credentials?|authorization)"
)
_WORD = rf"(?:[\w-]*(?:{_SECRET}|private_?key|signature)|pass|AccountKey|SharedAccessKey|sig)"
_START = r"(?<![\w-])"
"""Where a name begins: nowhere inside of it, or each hyphen of a long text would be a place to try."""
_BEGIN = r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----"
SECRET_NAME = (
    rf"{_SECRET}$|(?:^|[._-])(?:pass|ssl\.key\.pem|ssl\.keystore\.key|basic\.auth\.user\.info|private[._-]?key|registry_auth)$"
    r"|account\.key$|\.(?:account\.key|client\.secret|user\.password|refresh\.token)\."
    r"|\.sas[.-](?:fixed\.)?token|fs\.azure\.sas\.|client-provided-key(?:\.|$)"
)
"""What the option of a secret is called: ``kafka.ssl.key.password``, ``fs.s3a.secret.key``. A pattern for Java as well,
without regard to case."""
SECRET_OF_URL = (
    r"(?<=://)[^/?#@:\s]*:[^/?#\s]+(?=@)"
    rf"|(?<=[?&;](?:[\w-]{{0,30}}(?:{_SECRET}|signature)|AccountKey|SharedAccessKey|sig)=)[^&;\s]+"
)
"""User and password in ``scheme://user:secret@host``, and the value in ``?password=secret``. A pattern for Java alone,
without regard to case."""
SECRET_TEXT = rf"{SECRET_OF_URL}|private_key|{_BEGIN}|\b(?:Bearer|Basic)\s+\S{{16}}"
"""What says that the value of a setting holds a secret, beside the word. A pattern for Java alone."""

_NAME = re.compile(SECRET_NAME, re.IGNORECASE)
_PLAIN = re.compile(r"(?:endpoint|url|uri|provider|provider\.type|location|path|file|class)$", re.IGNORECASE)
"""What ends the name of an option that only says where a secret is."""
_PARAMETER = re.compile(rf"""(?:[?&;\s]|^)({_WORD})=(?!\$\{{)[^&;"'\s]""", re.IGNORECASE)
"""A parameter of a URL, or a part of a connection string."""
_LOGIN = re.compile(rf"""({_START}({_WORD})\s*=\s*|["']({_WORD})["']\s*:\s*)(["'])(?!\$\{{)[^"']""", re.IGNORECASE)
"""A quoted value: ``clientSecret="..."`` in Java's `sasl.jaas.config`, ``"private_key": "..."`` in JSON."""
_USER = re.compile(r"(?<![\w+.-])(\w[\w+.-]*://)([^/?#@:\s]*):(?!\$\{[^}]*\}@)[^/?#\s]+@")
"""``scheme://user:secret@host``."""
_HEADER = re.compile(r"\b(Bearer|Basic)\s+(?=\S{16})(?!\S*\$\{)\S+", re.IGNORECASE)
"""What HTTP's header `Authorization` says."""
_KEY = re.compile(rf"{_BEGIN}.*?(?:-----END [A-Z ]*-----|\Z)", re.DOTALL)
"""A private key as PEM."""
_SHOWN = re.compile(
    rf"""({_START}{_WORD}["']?\s*=\s*|{_START}{_WORD}["']\s*:\s*)(?!["']?\$\{{)"""
    r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\{[^}]*\}|[^&;,"'\s)\]}]+)""",
    re.IGNORECASE,
)
"""A secret in a message or a log, behind its name."""


def is_secret(name: str) -> bool:
    """Whether an option of this name holds a secret."""
    return _NAME.search(name) is not None and _PLAIN.search(name) is None


def instead_of_secret(text: str) -> str | None:
    """What to write, with a variable, for the secret inside the value of an option; None if there is none."""
    if (match := _PARAMETER.search(text)) is not None:
        return f"{match[1]}={_variable(match[1])}"
    if (match := _LOGIN.search(text)) is not None:
        return f"{f'{match[2]}=' if match[2] else match[1]}{match[4]}{_variable(match[2] or match[3])}{match[4]}"
    if (match := _USER.search(text)) is not None:
        return f"{match[1]}{match[2]}:${{password}}@"
    if (match := _HEADER.search(text)) is not None:
        return f"{match[1]} ${{token}}"
    found = _KEY.search(text)
    return None if found is None or "${" in found[0] else "${private_key}"


def _variable(name: str) -> str:
    return f"${{{re.sub(r'[^A-Za-z0-9_]', '_', name)}}}"


def masked(text: str) -> str:
    """The text of a message or a log with `HIDDEN` for each secret in it; variables stay."""
    if "=" not in text and ":" not in text and "-----" not in text and not _HEADER.search(text):
        return text
    text = _HEADER.sub(rf"\1 {HIDDEN}", _KEY.sub(lambda key: key[0] if "${" in key[0] else HIDDEN, text))
    return _SHOWN.sub(rf"\1{HIDDEN}", _USER.sub(rf"\1\2:{HIDDEN}@", text))
