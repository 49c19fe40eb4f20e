"""The network: words to vectors, vectors to states, states to labels."""
