"""Methods that hold weights, or answers, to what they were."""
