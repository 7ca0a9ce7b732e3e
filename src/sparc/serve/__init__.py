"""A page and an API on which anyone teaches a model and asks it: `sparc serve`."""
