"""Meters for training loops: sums of moments on the device of the lengths, and the utilisation (MFU, HFU) from them."""
