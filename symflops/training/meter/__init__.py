"""Meters for training loops: sums of moments, summed on the device, and the resulting MFU and HFU."""
