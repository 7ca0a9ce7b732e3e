"""What the model is for people with pictures."""
