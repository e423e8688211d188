"""The auditor's side without private data: an archive of all records, numbered checks of it, and a report."""
