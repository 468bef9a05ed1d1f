"""The base of all operators: flows of records in columns, their moments, their keys, and their failures."""
