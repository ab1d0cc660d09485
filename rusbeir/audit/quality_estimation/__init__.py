"""Quality estimation: scores of translations without a reference, by models, functions, programs and files."""
