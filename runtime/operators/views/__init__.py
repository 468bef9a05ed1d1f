"""Views of a plan's state: which stores exist, and the content of a store, as rows.

Everything here only reads. It reads an ordered map of one stage and partition, which the caller provides: from the
checkpoint of a query (`vsc.runtime.spark.checkpoint.epoch_state`), or from a test.
"""

from vsc.runtime.operators.views.question import Question, Status, StoreInfo
from vsc.runtime.operators.views.view import Entry, StoreView

__all__ = ["Entry", "Question", "Status", "StoreInfo", "StoreView"]
