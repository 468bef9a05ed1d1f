"""`vsc upgrade`: a new checkpoint, for a changed topology, that goes on where an old one stopped.

`preflight` checks, once, what can be refused before anything is carried over: only a `PreparedUpgrade` is run.
`decisions` says what becomes of each store, or why not, and checks the positions that the user gives to sources;
`positions` writes where each goes on; `carried` moves the rows of stores, on executors; `job` puts all of that
together, in the folder of the new checkpoint.

Guarantees: the old checkpoint is only read; nothing is written before all that can be seen to be wrong has been looked
at; the new checkpoint counts once its identity is there, which is written last, so that an upgrade that was killed is
repeated from its beginning.
"""

from vsc.runtime.spark.upgrade.carried import CarriedOver
from vsc.runtime.spark.upgrade.decisions import emptied, remarks
from vsc.runtime.spark.upgrade.job import upgrade
from vsc.runtime.spark.upgrade.preflight import PreparedUpgrade, Upgrade, prepare

__all__ = ["CarriedOver", "PreparedUpgrade", "Upgrade", "emptied", "prepare", "remarks", "upgrade"]
