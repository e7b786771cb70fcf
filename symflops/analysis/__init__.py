"""What follows from a program alone: growth, crossovers, one more of a size, worked figures. It computes and prints nothing."""
