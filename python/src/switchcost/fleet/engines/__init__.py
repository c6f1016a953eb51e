"""What starts the program on each host."""
