"""Methods that give each task weights of its own within one net."""
