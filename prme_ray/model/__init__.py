"""Ground floor: the words, tables, settings and errors that every other package shares.

Nothing here imports ``stages``, ``storage``, ``actors``, ``jobs`` or the rest of ``prme_ray``.
"""
