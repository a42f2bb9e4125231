"""Repository-level code completion experiments: the program `repoformer`, and this module to start it."""
