"""Decoding: text in, labels and probabilities out."""
