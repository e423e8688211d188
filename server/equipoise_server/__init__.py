"""The custodian's side of Equipoise: everything that touches private data or keys."""
