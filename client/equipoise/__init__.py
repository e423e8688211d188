"""Equipoise: ask a private table many questions, without telling the other analysts which."""
