"""``python -m tests.generated SEED``: see `tests.generated.case`; ``SEED partitions``: `tests.generated.shrinking`."""

import sys

from tests.generated import case, shrinking

if sys.argv[2:3] == ["partitions"]:
    sys.exit(shrinking.main(sys.argv[1:]))
case.main()
