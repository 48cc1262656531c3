"""NeMo Gym's simple agent, its clients and the resources server of rolloutd.nemo_gym, each behind its own port; the policy model alone is replaced.
Needs Python 3.13."""
import asyncio
import importlib
import os
import socket
import sys

from common import SAMPLES, SOURCES, UNREADABLE, check_record, client_of, done, route, service

sys.path.insert(0, os.path.join(SOURCES, "nemo_gym"))


def policy(fastapi):
    """Says what the prompt asks it to say."""
    app = fastapi.FastAPI()

    @app.post("/v1/responses")
    async def responses(request: fastapi.Request):
        asked = (await request.json())["input"][-1]["content"]
        return {"id": "r", "created_at": 0.0, "model": "toy", "object": "response", "parallel_tool_calls": False, "tool_choice": "none", "tools": [],
                "output": [{"id": "m", "type": "message", "role": "assistant", "status": "completed",
                            "content": [{"type": "output_text", "text": asked.partition(":")[2], "annotations": []}]}]}

    return app


class Servers:
    """Each app on a port of its own, all on one loop: Gym has one HTTP client for a process."""

    def __init__(self):
        self.uvicorn, self.running, self.sockets = importlib.import_module("uvicorn"), [], {}

    def port(self, name):
        self.sockets[name] = socket.create_server(("127.0.0.1", 0))
        return self.sockets[name].getsockname()[1]

    def run(self, name, app):
        server = self.uvicorn.Server(self.uvicorn.Config(app, log_level="error", lifespan="off"))
        self.running.append((server, asyncio.create_task(server.serve(sockets=[self.sockets[name]]))))

    async def stop(self):
        for server, task in self.running:
            server.should_exit = True
            await task


def build(servers, url):
    omegaconf = importlib.import_module("omegaconf")
    utils = importlib.import_module("nemo_gym.server_utils")
    types = importlib.import_module("nemo_gym.config_types")
    ours = importlib.import_module("rolloutd.nemo_gym")
    agent = importlib.import_module("responses_api_agents.simple_agent.app")
    config = {"policy_model": {"responses_api_models": {"toy": {"host": "127.0.0.1", "port": servers.port("policy_model"), "entrypoint": "app.py"}}},
              "rolloutd": {"resources_servers": {"rolloutd": {"host": "127.0.0.1", "port": servers.port("rolloutd"), "entrypoint": "app.py", "url": url}}},
              "agent": {"responses_api_agents": {"simple_agent": {
                  "host": "127.0.0.1", "port": servers.port("agent"), "entrypoint": "app.py", "resources_server": {"type": "resources_servers", "name": "rolloutd"},
                  "model_server": {"type": "responses_api_models", "name": "policy_model"}}}}}
    client = utils.ServerClient(head_server_config=types.BaseServerConfig(host="127.0.0.1", port=1), global_config_dict=omegaconf.OmegaConf.create(config))
    judge = ours.RolloutdServer(config=ours.RolloutdConfig(**config["rolloutd"]["resources_servers"]["rolloutd"], name="rolloutd"), server_client=client)
    simple = agent.SimpleAgent(config=agent.SimpleAgentConfig(**config["agent"]["responses_api_agents"]["simple_agent"], name="agent"), server_client=client)
    servers.run("policy_model", policy(importlib.import_module("fastapi")))
    servers.run("rolloutd", judge.setup_webserver())
    servers.run("agent", simple.setup_webserver())
    return client, utils


async def run(url):
    servers = Servers()
    client, utils = build(servers, url)
    try:
        return await collect(client, utils)
    finally:
        await servers.stop()
        await utils.get_global_aiohttp_client().close()


async def collect(client, utils):
    async def post(name, path, body):
        reply = await client.post(server_name=name, url_path=path, json=body)
        await utils.raise_for_status(reply)
        return await utils.get_response_json(reply)

    rows = []
    for number, (said, label, _) in enumerate(SAMPLES):
        body = {"responses_create_params": {"input": [{"role": "user", "content": f"say:{said}"}]}, "expected_answer": label, "_ng_task_index": number,
                "_ng_rollout_index": 0}
        rows.append(await post("agent", "/run", body))
    kept = [{name: value for name, value in row.items() if name not in ("response", "responses_create_params")} for row in rows]
    for number, row in enumerate(kept):
        row.update(_ng_task_index=number, _ng_rollout_index=0)
    mode = await utils.get_response_json(await client.get(server_name="rolloutd", url_path="/reverify_mode"))
    session = {"resources_session_id": "s", "episode_id": {"rollout_id": "0-0"}}
    closed = await post("rolloutd", "/close_session", session)
    metrics = await post("agent", "/aggregate_metrics", {"verify_responses": [row for row in kept if "_ng_failure_class" not in row]})
    again = await post("rolloutd", "/verify", {**rows[-1], "expected_answer": "42"})
    return rows, mode, closed, metrics, again


def main():
    with service() as made:
        client = client_of(made)
        client.attach("gym", step=0, revision=0)
        rows, mode, closed, metrics, again = asyncio.run(run(route(made, "/compat/nemo_gym/verify?run=gym")))
        assert [row["reward"] for row in rows] == [reward or 0 for _, _, reward in SAMPLES], rows
        assert [row["mask_sample"] for row in rows] == [reward is None for _, _, reward in SAMPLES]
        assert rows[-1]["expected_answer"] == UNREADABLE and rows[-1]["_ng_failure_class"] == "judge_failed"
        assert importlib.import_module("nemo_gym.failure_kinds").is_namespaced(rows[-1]["failure_kind"]), rows[-1]
        assert (mode, closed) == ("stateless", {"resources_session_id": "s"})
        assert metrics["key_metrics"]["mean/reward"] == 0.5, metrics
        assert again["reward"] == 1 and "_ng_failure_class" not in again and again["mask_sample"] is False
        check_record(client, "gym", [*SAMPLES, SAMPLES[0]])
    done("NeMo Gym", "the simple agent's /run, metrics, reverify mode and sessions", "a failure is masked and of the class judge_failed")


if __name__ == "__main__":
    main()
