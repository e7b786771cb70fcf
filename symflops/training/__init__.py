"""Training: a meter of steps, modules as they train, the frameworks that call both, and the peak rates of devices."""
