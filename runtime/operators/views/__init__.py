"""Looking into the state of a plan: which stores there are, and what lies in one of them, as rows.

Everything here reads; nothing writes. What is read is an ordered map of one stage and partition, wherever the caller
has it from: the checkpoint of a query (`vsc.runtime.spark.epoch_state`), or a test's own.
"""

from vsc.runtime.operators.views.question import Question, Status
from vsc.runtime.operators.views.store import StoreInfo
from vsc.runtime.operators.views.view import Entry, StoreView

__all__ = ["Entry", "Question", "Status", "StoreInfo", "StoreView"]
