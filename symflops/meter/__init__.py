"""What a training loop uses: moments summed where the lengths are, and the utilisation that they make."""
