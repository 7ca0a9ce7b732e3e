"""SPARC, and its ablations."""
