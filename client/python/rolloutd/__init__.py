"""Client of rolloutd, which samples, judges and scores rollouts for reinforcement-learning trainers.

    import rolloutd

    client = rolloutd.Client("http://127.0.0.1:8787")
    batch = client.batch(run="arith", policy_revision=0, sampling={"n": 8}, verifiers=[{"name": "math"}],
                         groups=[{"task": "six-times-seven", "prompt": "What is 6*7?", "reference": "42"}])

The package needs the standard library alone. `rolloutd.torch` needs PyTorch, arrays as numpy need numpy.
"""
from ._client import Client, Stream
from ._error import Error
from ._lease import Lease
from ._serve import Server, serve

__all__ = ["Client", "Error", "Lease", "Server", "Stream", "serve"]
__version__ = "0.1.0"
