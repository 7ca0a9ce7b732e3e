"""The paper's tables and figures, made again beside its numbers. Only `sparc reproduce` imports this."""
