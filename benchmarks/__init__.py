"""How fast it is: `make bench`. How much it gets right: `python -m benchmarks.story`."""
