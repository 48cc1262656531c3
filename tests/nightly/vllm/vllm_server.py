"""A real vLLM in processes of its own, and plain ways to ask it what the service asks it."""
import os
import re
import signal
import socket
import subprocess

from engines import ProcessEngine
from harness import descendants, eventually, http_request

MODEL = "smol"
PLACES = 8
CONTEXT = 2048
MODELS = {"first": os.environ.get("ROLLOUTD_VLLM_MODEL", ""), "second": os.environ.get("ROLLOUTD_VLLM_MODEL_2", ""), "reward": os.environ.get("ROLLOUTD_VLLM_REWARD", "")}
DEVELOPMENT = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_SERVER_DEV_MODE": "1", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Vllm(ProcessEngine):
    """Numbers of 32 bits, so that a seed gives the same tokens alone and beside others; eight places; one thread. It ends with us."""
    weights, served = "first", MODEL

    def __init__(self, folder, *options):
        self.folder, self.options, self.port, self.process, self.family = str(folder), options, free_port(), None, []
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        self.log_file = os.path.join(self.folder, "vllm.log")
        command = ["nice", "-n", "10", "setpriv", "--pdeathsig", "TERM", os.environ["ROLLOUTD_VLLM_PYTHON"], "-m", "vllm.entrypoints.openai.api_server",
                   "--model", MODELS[self.weights], "--served-model-name", self.served, "--host", "127.0.0.1", "--port", str(self.port), "--dtype", "float32",
                   "--max-model-len", str(CONTEXT), "--max-num-seqs", str(PLACES), "--enforce-eager", *self.options]
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **DEVELOPMENT})
        try:
            eventually(self.ready, "vLLM to answer")
            self.warm()  # the first request takes seconds
        except BaseException:
            self.close()
            raise

    def warm(self):
        self.plain("Warm.", 1, max_tokens=2)

    def ready(self):
        assert self.process.poll() is None, f"vLLM ended with {self.process.returncode}:\n{self.log()[-6000:]}"
        try:
            return http_request(self.url, "GET", "/health").status == 200
        except OSError:
            return False

    def as_kind(self, kind):
        return f"{self.url}#kind={kind}&model={MODEL}"

    def kill(self):
        """kill -9, with the processes that hold the model: stopped first and the listener last, so that they die as one and nothing is sent to what is half dead."""
        self.process.send_signal(signal.SIGSTOP)
        self.family = descendants(self.process.pid)
        self.end_family()
        self.process.kill()
        self.process.wait()

    def end_family(self):
        for child in self.family:
            if child.alive():
                try:
                    os.kill(child.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        eventually(lambda: not any(child.alive() for child in self.family), "vLLM's processes to end")

    def close(self):
        if self.process.poll() is None:
            self.family = descendants(self.process.pid)
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.end_family()

    # -- what it says -------------------------------------------------------------------------------------------

    def read(self, path):
        reply = http_request(self.url, "GET", path)
        assert reply.status == 200, reply
        return reply.json

    def tokens(self, prompt):
        return self.post("/tokenize", {"model": MODEL, "prompt": prompt}).json["tokens"]

    def text(self, ids):
        return self.post("/detokenize", {"model": MODEL, "tokens": ids}).json["prompt"]

    def plain(self, prompt, seed, **sampling):
        """(ids, log-probabilities, text) of /v1/completions, untruncated unless sampling says otherwise."""
        choice = self.post("/v1/completions", {
            "model": MODEL, "prompt": prompt, "seed": seed, "temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "logprobs": 0, "return_token_ids": True,
            **sampling}).json["choices"][0]
        return choice["token_ids"], choice["logprobs"]["token_logprobs"], choice["text"]

    def metric(self, name):
        """Summed over its labels."""
        text = http_request(self.url, "GET", "/metrics").body.decode()
        return sum(float(value) for value in re.findall(rf"^vllm:{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE))

    @property
    def running(self):
        return self.metric("num_requests_running")

    @property
    def waiting(self):
        return self.metric("num_requests_waiting")

    def ended(self, reason):
        text = http_request(self.url, "GET", "/metrics").body.decode()
        return float(re.search(rf'^vllm:request_success_total{{.*finished_reason="{reason}".*}} (\S+)$', text, re.MULTILINE).group(1))

    # -- weights --------------------------------------------------------------------------------------------------

    def pause(self, mode):
        """Answers when the mode is satisfied."""
        assert http_request(self.url, "POST", f"/pause?mode={mode}", b"").status == 200

    def load(self, weights, version):
        self.post("/collective_rpc", {"method": "reload_weights", "kwargs": {"weights_path": MODELS[weights]}, "timeout": 120})
        assert self.post("/reset_prefix_cache", {}).json["success"] is True
        self.post("/update_weight_version", {"new_version": version})

    def resume(self):
        self.post("/resume", {})


class RewardVllm(Vllm):
    """A reward model: numbers for texts, no samples."""
    weights, served = "reward", "reward"

    def warm(self):
        self.post("/classify", {"model": self.served, "input": "Warm."})
