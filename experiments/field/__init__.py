"""What the checker says of public classes that nobody wrote for it."""
