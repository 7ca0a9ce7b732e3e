"""What nothing falls below, and what nothing passes: fine-tuning without a care, and all pictures at once."""
