"""A resources server of NeMo Gym whose judge is rolloutd. Needs NeMo Gym; its own servers find each other by host and port alone, so that
this one stands between them and the service's path. resources_servers/rolloutd/app.py is two lines:

    from rolloutd.nemo_gym import RolloutdServer
    RolloutdServer.run_webserver()

Its configuration has `url: http://127.0.0.1:8787/compat/nemo_gym/verify?run=my-run` beside `entrypoint: app.py`. Sessions and metrics are Gym's.
"""
from __future__ import annotations

from typing import Any, ClassVar

from fastapi import Body
from fastapi.responses import JSONResponse
from nemo_gym.base_resources_server import BaseResourcesServerConfig, ReverifyMode, SimpleResourcesServer
from nemo_gym.server_utils import get_response_json, raise_for_status, request


class RolloutdConfig(BaseResourcesServerConfig):  # type: ignore[misc]
    url: str
    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.STATELESS


class RolloutdServer(SimpleResourcesServer):  # type: ignore[misc]
    config: RolloutdConfig

    async def verify(self, body: dict[str, Any] = Body()) -> JSONResponse:
        """The request, with `reward`. A sample that could not be graded has the failure class `judge_failed`."""
        response = await request("POST", self.config.url, json=body)
        await raise_for_status(response)
        return JSONResponse(await get_response_json(response))
