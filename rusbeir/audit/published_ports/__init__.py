"""Published ports: checked without a journal, by their texts alone."""
