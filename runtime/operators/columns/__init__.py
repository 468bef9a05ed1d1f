"""What all operators build on: flows of records in columns, their moments, their keys, and their failures."""
