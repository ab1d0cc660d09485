"""The command line: one module per verb, nothing but arguments, progress and printing."""
