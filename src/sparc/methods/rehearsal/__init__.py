"""Methods that keep some old pictures and replay them."""
