"""Start OpenAI-compatible servers of one model: vLLM where it is installed, else the laboratory's own."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

from rlvrlab import fate, plain_files
from rlvrlab.engines.openai.roster import Listed
from rlvrlab.errors import InfrastructureError, UserError
from rlvrlab.extras import install_hf
from rlvrlab.http_access import refuse_open_door
from rlvrlab.http_client import BadAnswer, Host

EMBEDDED = "embedded"
"""The laboratory's own server, engines/hf/serving.py."""
VLLM_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""Values of --max-lora-rank."""
TOKEN_ENV = "RLVR_MODEL_TOKEN"  # noqa: S105
KEY_ENVS = {"vllm": "VLLM_API_KEY", EMBEDDED: TOKEN_ENV}
"""How each backend is told the token; `transformers serve` knows none."""
GRACE_S = 30.0
"""For replicas to finish what they are at; longer than they take themselves."""
TAIL = 2000
MEMORY = 0.9
"""Share of a GPU that vLLM takes by itself."""


@dataclass(frozen=True)
class ServerProcess:
    """A server that was started here, with the nameless file it logs to: a kill leaves nothing behind."""

    url: str
    process: subprocess.Popen[bytes]
    log: BinaryIO

    @property
    def tail(self) -> str:
        """The end of its log, on one line."""
        size = os.fstat(self.log.fileno()).st_size
        text = os.pread(self.log.fileno(), TAIL, max(0, size - TAIL)).decode("utf-8", "replace")
        return " | ".join(line.strip() for line in text.splitlines() if line.strip())[-400:]


class Fleet:
    """Replicas of one model; leaving the context stops them, whatever happened."""

    def __init__(
        self, model: str, replicas: int, backend: str, host: str, port: int, extra: Sequence[str], adapters: int = 0,
        token: str | None = None, receive: int | None = None, hosts: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """`port` 0 picks free ones, any other is the first of a row; `adapters` is the largest rank that is taken.

        `receive` is the port of an adapter door (engines/openai/adapter_door.py); `hosts` are further names of this
        machine that callers may use.
        """
        self.model, self.backend, self._adapters = refuse_code(model), backend, adapters
        if adapters and (backend == "transformers" or adapters > VLLM_RANKS[-1]):
            allowed = f"vllm or embedded, rank at most {VLLM_RANKS[-1]}"
            raise UserError(f"--adapters {adapters}: backend {backend} does not take them; allowed: {allowed}")
        if receive is not None and not adapters:
            raise UserError("--receive takes adapters for servers that load them; add --adapters RANK, e.g. 16")
        self._token, self._hosts = token, [word for name in hosts for word in ("--allow-host", name)]
        if token and backend not in KEY_ENVS:
            raise UserError(f"backend {backend} knows no token; allowed with one: {', '.join(KEY_ENVS)}")
        refuse_open_door(host, token, TOKEN_ENV)
        self._program = find_program(backend)
        wanted = [port + index if port else 0 for index in range(replicas)]
        ports = _free_ports(host, [*wanted, *([] if receive is None else [receive])])
        self._places = [(host, free) for free in ports[:replicas]]
        self._door_place = None if receive is None else (host, ports[-1])
        self._extra = list(extra)
        self._links: Path | None = None
        if backend == "transformers" and "@" in self.model and Path(self.model).is_dir():
            # `transformers serve` takes what follows an @ for a revision, so the folder is linked under another name.
            self._links = Path(tempfile.mkdtemp(prefix="rlvr_serve_"))
            link = self._links / Path(self.model).name.replace("@", "_")
            link.symlink_to(self.model)
            self.model = str(link)
        self.replicas: list[ServerProcess] = []
        self.door: ServerProcess | None = None
        """Where a trainer sends adapters that it shares no folder with."""

    @property
    def served_name(self) -> str:
        """The model id to ask for."""
        return self.model if self.backend == "transformers" else Path(self.model).name or self.model

    def __enter__(self) -> Fleet:
        devices = visible_devices()
        for index, (host, port) in enumerate(self._places):
            environment = dict(os.environ)
            if self._token:
                environment[KEY_ENVS[self.backend]] = self._token
            if devices:
                environment["CUDA_VISIBLE_DEVICES"] = devices[index % len(devices)]
            if self._adapters:
                environment["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] = "True"
            command = fate.command(self._command(host, port, len(devices)))
            self.replicas.append(_started(f"http://{host}:{port}", command, environment))
        if self._door_place is not None:
            host, port = self._door_place
            words = ["--host", host, "--port", str(port), "--parent", str(os.getpid()), *self._hosts]
            command = [sys.executable, "-m", "rlvrlab.engines.openai.adapter_door", *words]
            environment = {**os.environ, **({TOKEN_ENV: self._token} if self._token else {})}
            self.door = _started(f"http://{host}:{port}", command, environment)
        return self

    @property
    def processes(self) -> list[ServerProcess]:
        """All that was started."""
        return [*self.replicas, *([self.door] if self.door else [])]

    @property
    def listed(self) -> list[Listed]:
        """The servers as trainers name them."""
        return [Listed(replica.url, self.door.url if self.door else None) for replica in self.replicas]

    def _command(self, host: str, port: int, devices: int) -> list[str]:
        place = ["--host", host, "--port", str(port)]
        if self.backend == EMBEDDED:
            named = ["--served-model-name", self.served_name, "--adapters", str(self._adapters)]
            words = [*place, *named, *self._hosts, *self._extra]
            return [self._program, "-m", "rlvrlab.engines.hf.serving", self.model, *words]
        common = [self._program, "serve", self.model, *place]
        if self.backend == "transformers":
            return [*common, *self._extra]
        crowd = -(-len(self._places) // max(1, devices))
        shared = ["--gpu-memory-utilization", f"{MEMORY / crowd:.2f}"] if devices and crowd > 1 else []
        if self._adapters:
            rank = next(rank for rank in VLLM_RANKS if rank >= self._adapters)
            shared += ["--enable-lora", "--max-lora-rank", str(rank), "--logprobs-mode", "processed_logprobs"]
            # The trainer's own default; a --dtype among the user's extra words comes later and wins.
            shared += ["--dtype", "bfloat16" if devices else "float32"]
        return [*common, "--served-model-name", self.served_name, *shared, *self._extra]

    def wait(self, timeout_s: float) -> None:
        """Until all answer; one that ends before is an error with its last words."""
        ends = time.monotonic() + timeout_s
        waiting = self.processes
        while waiting:
            for replica in list(waiting):
                if replica.process.poll() is not None:
                    why = f"ended with {replica.process.returncode}: {replica.tail}"
                    raise InfrastructureError(f"{self.backend} {why} (all of it: {_kept_log(replica)})")
                if asyncio.run(_answers(replica.url, self._token)):
                    waiting.remove(replica)
            if waiting and time.monotonic() > ends:
                last = waiting[0]
                raise InfrastructureError(f"{last.url}: no answer within {timeout_s:g} s: {last.tail}")
            if waiting:
                time.sleep(0.5)

    def ended(self) -> list[ServerProcess]:
        """Servers whose process has ended, the door among them."""
        return [one for one in self.processes if one.process.poll() is not None]

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        fate.end([replica.process for replica in self.processes], GRACE_S, group=True)
        for replica in self.processes:
            replica.log.close()
        if self._links is not None:
            shutil.rmtree(self._links, ignore_errors=True)


def find_program(backend: str) -> str:
    """The program beside this Python, or else on the path."""
    if backend == EMBEDDED:
        return sys.executable
    beside = Path(sys.executable).with_name(backend)
    program = str(beside) if beside.exists() else shutil.which(backend)
    if program is None:
        raise UserError(f"{backend} is not installed here; `pip install {backend}`, or name another --backend")
    return program


def choose_backend() -> str:
    """vLLM where it is installed, else our own; `transformers serve` needs packages that often are not there."""
    with suppress(UserError):
        find_program("vllm")
        return "vllm"
    if find_spec("torch") is None or find_spec("transformers") is None:
        raise UserError(f"nothing here can serve a model: {install_hf()}, or `pip install vllm`")
    return EMBEDDED


def refuse_code(model: str) -> str:
    """A model folder that brings code or pickles is not loaded; a name is left to the server, which trusts no code."""
    folder = Path(model)
    if not folder.is_dir():
        if folder.is_absolute() or model.startswith("."):
            raise UserError(f"{model}: no such model folder")
        return model
    try:
        config = plain_files.strict(plain_files.read_text(folder / "config.json"))
    except FileNotFoundError:
        raise UserError(f"{folder}: no config.json; give the folder of a Hugging Face model") from None
    except (ValueError, OSError) as error:
        raise UserError(f"{folder / 'config.json'}: cannot be read ({error})") from None
    if isinstance(config, dict) and "auto_map" in config:
        raise UserError(f"{folder}: config.json names code of its own (auto_map); it would run here; remove it")
    if not list(folder.glob("*.safetensors")):
        raise UserError(f"{folder}: no *.safetensors; pickled weights can run code and are not loaded; convert them")
    return str(folder.resolve())


def visible_devices() -> list[str]:
    """GPUs this process may use; none without NVIDIA's tool."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return [device for device in given.split(",") if device.strip() and device.strip() != "-1"]
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    with suppress(OSError, subprocess.TimeoutExpired):
        listed = subprocess.run([tool, "-L"], capture_output=True, text=True, timeout=10).stdout  # noqa: S603
        return [str(i) for i, line in enumerate(line for line in listed.splitlines() if line.startswith("GPU"))]
    return []


def _started(url: str, command: Sequence[str], environment: Mapping[str, str]) -> ServerProcess:
    """Its own session lets stopping it stop its workers too."""
    log = tempfile.TemporaryFile()  # noqa: SIM115 -- closed with the fleet
    process = subprocess.Popen(  # noqa: S603
        command, stdout=log, stderr=subprocess.STDOUT, env=environment, stdin=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    return ServerProcess(url, process, log)


def _free_ports(host: str, asked: Sequence[int]) -> list[int]:
    """One for each, 0 for any; all held at once while looking, so that they differ."""
    with ExitStack() as held:
        ports = []
        for wanted in asked:
            place = held.enter_context(socket.socket())
            if wanted:  # a server that was stopped a moment ago can be started again where it was
                place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                place.bind((host, wanted))
            except OSError as error:
                where = f"{host}:{wanted}"
                raise UserError(f"cannot use {where} ({error.strerror}); choose another --port, 0 for any") from None
            ports.append(int(place.getsockname()[1]))
        return ports


def _kept_log(replica: ServerProcess) -> str:
    """A copy of the log of a server that ended, to be read at leisure."""
    with tempfile.NamedTemporaryFile("wb", prefix="rlvr_serve_", suffix=".log", delete=False) as copy:
        replica.log.seek(0)
        shutil.copyfileobj(replica.log, copy)
    return copy.name


async def _answers(url: str, token: str | None) -> bool:
    host = Host(url, token)
    try:
        async with asyncio.timeout(10):
            return (await host.request("/health")).status == 200
    except (OSError, TimeoutError, BadAnswer):
        return False
    finally:
        await host.close()
