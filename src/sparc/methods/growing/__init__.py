"""Methods whose net grows with the tasks."""
