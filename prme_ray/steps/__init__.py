"""The steps of a retrieval, each a plain function of the values it names.

:mod:`prme_ray.pipeline` wires them; executors run them. A step that reads an owner's memories gets
an ``OwnerView`` first, the embedding step gets the encoder; all others are pure.
"""
