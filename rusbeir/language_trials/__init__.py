"""Language trials: the recipes of a language measured on datasets, and the terms that a change of recipe changes."""
