"""What may be asked: schemas, predicates, statements, and the workloads they compile to."""
