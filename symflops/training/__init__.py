"""Training: MFU meters, introspection of live modules, framework adapters, and peak rates of devices."""
