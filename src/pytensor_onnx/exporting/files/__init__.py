"""Tools on files: loading, quantization, verification, latency."""
