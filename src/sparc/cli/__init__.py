"""The verbs: parse, call, print."""
