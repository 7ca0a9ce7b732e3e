"""Methods that keep what is learned within, or out of, the spaces that old tasks live in."""
