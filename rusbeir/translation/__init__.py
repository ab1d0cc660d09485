"""Translation: texts cut, protected, translated, checked and put together again."""
