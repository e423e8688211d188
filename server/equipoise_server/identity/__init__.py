"""Who may call: the deployment's certificate authority, the registry of identities, the policy table."""
