"""Methods that remember classes by statistics of their features, and keep no picture."""
