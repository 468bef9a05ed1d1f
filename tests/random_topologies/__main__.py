"""``python -m tests.random_topologies SEED``: see `case`; ``SEED partitions``: `shrinking`."""

import sys

from tests.random_topologies import case, shrinking

if sys.argv[2:3] == ["partitions"]:
    sys.exit(shrinking.main(sys.argv[1:]))
case.main()
