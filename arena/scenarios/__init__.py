"""The catalogue: one module a scenario. Its docstring is its page on the site; nothing is registered."""
