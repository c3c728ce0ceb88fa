"""The field study: what the checker says of public implementations of attention."""
