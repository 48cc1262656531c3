#!/usr/bin/env python3
"""POST /v1/objective as a user would write it: FastAPI, uvicorn and numpy; started by tests/bench/objective.py.

    objective_fastapi.py pydantic|orjson|safetensors PORT

pydantic: JSON arrays through a model. orjson: JSON read by hand. safetensors: raw tensors. The reply carries the loss, each token's
contribution and dloss/dlogp in the same encoding, as float32 (rolloutd's are double).
"""
import sys

import numpy as np
import uvicorn
from fastapi import FastAPI, Request, Response

EPSILON = 0.2


def ragged_objective(new, old, lens, adv):
    rows = np.repeat(np.arange(len(lens)), lens)
    q = np.exp(new.astype(np.float64) - old)
    a = adv[rows]
    s1, s2 = q * a, np.clip(q, 1 - EPSILON, 1 + EPSILON) * a
    w = (1.0 / (lens * len(lens)))[rows]
    contribution = -np.minimum(s1, s2) * w
    gradient = np.where(s1 <= s2, -s1, 0.0) * w
    return float(contribution.sum()), contribution.astype(np.float32), gradient.astype(np.float32)


def from_lists(rows):
    lens = np.array([len(row["logprobs"]) for row in rows])
    new = np.concatenate([np.asarray(row["logprobs"], np.float32) for row in rows])
    old = np.concatenate([np.asarray(row["old_logprobs"], np.float32) for row in rows])
    adv = np.array([row["advantage"] for row in rows])
    loss, contributions, gradients = ragged_objective(new, old, lens, adv)
    cut = np.cumsum(lens)[:-1]
    return {"loss": loss, "sequences": [{"contributions": x.tolist(), "dloss_dlogp": y.tolist()}
                                        for x, y in zip(np.split(contributions, cut), np.split(gradients, cut))]}


def serve_pydantic(app):
    from pydantic import BaseModel

    class Sequence(BaseModel):
        logprobs: list[float]
        old_logprobs: list[float]
        advantage: float

    class Batch(BaseModel):
        sequences: list[Sequence]

    @app.post("/v1/objective")
    def objective(batch: Batch):
        return from_lists([row.__dict__ for row in batch.sequences])


def serve_orjson(app):
    import orjson

    @app.post("/v1/objective")
    async def objective(request: Request):
        reply = from_lists(orjson.loads(await request.body())["sequences"])
        return Response(orjson.dumps(reply), media_type="application/json")


def serve_safetensors(app):
    from safetensors.numpy import load, save

    @app.post("/v1/objective")
    async def objective(request: Request):
        tensors = load(await request.body())
        lens = np.diff(tensors["cu_seqlens"]).astype(np.int64)
        loss, contributions, gradients = ragged_objective(tensors["logprobs"], tensors["old_logprobs"], lens,
                                                          tensors["advantages"])
        return Response(save({"contributions": contributions, "dloss_dlogp": gradients}, {"loss": repr(loss)}),
                        media_type="application/octet-stream")


def main():
    app = FastAPI()
    {"pydantic": serve_pydantic, "orjson": serve_orjson, "safetensors": serve_safetensors}[sys.argv[1]](app)
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning", timeout_keep_alive=600)


main()
