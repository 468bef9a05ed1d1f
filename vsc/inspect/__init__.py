"""Looks at data files and writes the source statement that reads them: `survey`, then `statement` or `report`; that of
a topic whose schemas are in a registry is `topic_statement`."""

from vsc.inspect.files import FORMATS
from vsc.inspect.model import InspectError, Wanted
from vsc.inspect.report import report
from vsc.inspect.statement import Statement, statement
from vsc.inspect.survey import Survey, survey
from vsc.inspect.topics import TopicWanted, topic_statement

__all__ = [
    "FORMATS", "InspectError", "Statement", "Survey", "TopicWanted", "Wanted", "report", "statement", "survey",
    "topic_statement",
]  # fmt: skip
