"""What methods are made from: each part once, for all that need it."""
