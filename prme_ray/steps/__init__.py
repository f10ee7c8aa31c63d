"""The steps of a retrieval, each a plain function of the values it names.

:mod:`prme_ray.pipeline` wires them; executors run them. A step that reads an owner's memories gets
an ``OwnerView`` first, other steps with a place get what stands there (the encoder, the cross-encoder,
the rewriter of questions); all others are pure.
"""
