"""The subcommands of `equipoise`: analysts', operators', auditors'."""
