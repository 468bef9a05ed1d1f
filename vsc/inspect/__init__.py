"""Looks at data files and writes the source statement that reads them: `survey`, then `statement` or `report`."""

from vsc.inspect.files import FORMATS
from vsc.inspect.model import InspectError, Wanted
from vsc.inspect.report import report
from vsc.inspect.statement import Statement, statement
from vsc.inspect.survey import Survey, survey

__all__ = ["FORMATS", "InspectError", "Statement", "Survey", "Wanted", "report", "statement", "survey"]
