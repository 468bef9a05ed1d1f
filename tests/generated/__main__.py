"""``python -m tests.generated SEED``: see `tests.generated.case`."""

from tests.generated.case import main

main()
