"""Tables that an Apache Spark counts, locally or on a cluster."""
