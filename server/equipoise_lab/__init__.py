"""Planning, simulation, empirical audits and the demo: what needs no deployment."""
