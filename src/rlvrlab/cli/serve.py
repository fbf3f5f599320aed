"""rlvr serve: long-running services of the laboratory."""

from __future__ import annotations

import asyncio
import json
import shlex
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from rlvrlab.cli.printing import printable, printable_lines
from rlvrlab.errors import InfrastructureError, UserError
from rlvrlab.http_access import read_token

if TYPE_CHECKING:
    from rlvrlab.judge.fusion.server import JudgeServer
    from rlvrlab.scale.judge_fleet import JudgeFleet

F = TypeVar("F", bound=Callable[..., Any])


def refuse_spoken_token(option: str, variable: str) -> NoReturn:
    """A token on the command line is everybody's."""
    why = "every user of this machine can read its command lines"
    raise UserError(f"{option}: {why}; put the token into {variable}, or into a file named by --token-file")


def token_options(variable: str) -> Callable[[F], F]:
    """--token-file, and the refusal of a token on the command line."""

    def refuse(context: click.Context, parameter: click.Parameter, given: str | None) -> None:
        if given is not None:
            refuse_spoken_token("--token", variable)

    def add(function: F) -> F:
        hidden = click.option("--token", hidden=True, expose_value=False, is_eager=True, callback=refuse)
        told = f"File with the token; default: the environment variable {variable}."
        return hidden(click.option("--token-file", type=click.Path(path_type=Path), help=told)(function))

    return add


@click.group("serve", short_help="Serve the judge, a model or the dashboard.")
def command() -> None:
    """Serve the judge, a model or the dashboard."""


@command.command("judge")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address; others than this machine need a token.")
@click.option("--port", default=8080, show_default=True, type=click.IntRange(0, 65535), help="0 picks a free one.")
@token_options("RLVR_JUDGE_TOKEN")
@click.option(
    "--allow-host", multiple=True, metavar="NAME", help="A name of this machine that clients may use; again for more."
)
@click.option("--workers", type=click.IntRange(1), help="Programs at once; default: one more than cores.")
@click.option("--servers", type=click.IntRange(1, 256), default=1, show_default=True,
              help="Judge servers behind this address: started while requests wait, ended when idle.")  # fmt: skip
@click.option("--ray", "address", metavar="ADDRESS", help="Start them on a Ray cluster: auto or HOST:PORT.")
@click.option(
    "--queue", default=256, show_default=True, type=click.IntRange(1), help="Jobs beyond which the answer is 429."
)
@click.option("--grace", "grace_s", default=20.0, show_default=True, type=click.FloatRange(0),
              help="Seconds to finish what runs when told to stop.")  # fmt: skip
@click.option("--isolation", help="landlock, bwrap or weak.")
@click.option(
    "--packages", default="", help="Packages every program may import: numpy,pandas. Tests' imports are seen."
)
@click.option("--data", "files", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
              help="Keep these prepared code problems, to be asked for by id; again for more.")  # fmt: skip
@click.option("--allow-weak", is_flag=True, help="Accept a machine that cannot isolate.")
@click.option("--json", "as_json", is_flag=True, help="Print address and workers as one line of JSON when ready.")
def judge(
    host: str, port: int, token_file: Path | None, allow_host: tuple[str, ...], workers: int | None, servers: int,
    address: str | None, queue: int, grace_s: float, isolation: str | None, packages: str, files: tuple[Path, ...],
    allow_weak: bool, as_json: bool,
) -> None:  # fmt: skip
    """Speak SandboxFusion: /run_code, /submit, /list_datasets, /v1/ping; and /judge for whole batches."""
    from rlvrlab.data.rows import read_problems
    from rlvrlab.envs.data_files import bare_name
    from rlvrlab.judge.fusion.datasets import Datasets
    from rlvrlab.judge.fusion.server import TOKEN_ENV, JudgeServer
    from rlvrlab.judge.isolation import chosen_level
    from rlvrlab.judge.packages import check_installed
    from rlvrlab.judge.workers.orders import Image
    from rlvrlab.judge.workers.pool import Pool

    named = tuple(sorted({part.strip() for part in packages.split(",") if part.strip()}))
    check_installed(named, "--packages")
    token = read_token(TOKEN_ENV, token_file)
    level = chosen_level(isolation, allow_weak)
    if servers > 1 or address:
        words = ["--isolation", level, *(["--packages", packages] if packages else [])]
        words += ["--allow-weak"] if allow_weak else []
        words += [word for path in files for word in ("--data", str(path.absolute()))]
        place = {"token": token, "host": host, "port": port, "queue": queue, "hosts": allow_host}
        fleet, facts = _fleet(words, servers, workers, address, **place), {"servers": servers, "isolation": level}
        _run_judge(fleet, f"up to {servers} servers ({level})", facts, grace_s, as_json)
        return
    image = Image(level, named)
    pool = Pool(image, workers) if workers else Pool(image)
    datasets = Datasets({bare_name(path): list(read_problems(path)) for path in files})
    server = JudgeServer(pool, token, host, port, queue, allow_host, datasets)
    facts = {"workers": pool.size, "isolation": image.isolation}
    _run_judge(server, f"{pool.size} workers ({image.isolation})", facts, grace_s, as_json)


def _fleet(words: list[str], servers: int, workers: int | None, address: str | None, **given: Any) -> JudgeFleet:
    """Servers on this machine share its cores; on a cluster each takes as many processors as it has workers."""
    import secrets

    from rlvrlab.judge.workers.pool import default_size
    from rlvrlab.scale.fan_out import connected
    from rlvrlab.scale.judge_fleet import JudgeFleet
    from rlvrlab.scale.judge_starts import starter

    each = workers or (2 if address else -(-default_size() // servers))
    inner = secrets.token_hex(16)
    ray = connected(address, None) if address else None
    return JudgeFleet(starter([*words, "--workers", str(each)], inner, each, ray), servers, inner, **given)


def _run_judge(
    server: JudgeServer | JudgeFleet, size: str, facts: dict[str, Any], grace_s: float, as_json: bool
) -> None:
    """Until told to stop; says where it listens."""
    from rlvrlab.http_server import told_to_stop

    async def run() -> None:
        stop = asyncio.create_task(told_to_stop())
        await server.start()
        url = f"http://{server.host}:{server.port}"
        click.echo(json.dumps({"url": url, **facts}) if as_json else f"judge at {url} with {size}")
        try:
            await stop
        finally:
            await server.stop(grace_s)

    with suppress(KeyboardInterrupt):  # told twice
        asyncio.run(run())


@command.command("model", context_settings={"ignore_unknown_options": True})
@click.argument("path")
@click.argument("extra", nargs=-1, type=click.UNPROCESSED)
@click.option("--replicas", type=click.IntRange(1, 64), default=1, show_default=True, help="Servers; GPUs in turn.")
@click.option(
    "--backend", type=click.Choice(["auto", "vllm", "transformers", "embedded"]), default="auto", show_default=True
)
@click.option("--adapters", type=click.IntRange(0), default=0, metavar="RANK",
              help="Let a trainer load LoRA adapters of up to this rank (engine.sampler).")  # fmt: skip
@click.option("--receive", type=click.IntRange(0, 65535), metavar="PORT",
              help="Take them over the network here, for a trainer that shares no folder; 0: any port.")  # fmt: skip
@click.option("--host", default="127.0.0.1", show_default=True, help="Address; others than this machine need a token.")
@click.option(
    "--allow-host", multiple=True, metavar="NAME", help="A name of this machine that clients may use; again for more."
)
@token_options("RLVR_MODEL_TOKEN")
@click.option("--port", default=0, show_default=True, type=click.IntRange(0, 65535),
              help="Of the first one, the others follow; 0 picks free ones.")  # fmt: skip
@click.option(
    "--wait",
    "wait_s",
    default=600.0,
    show_default=True,
    type=click.FloatRange(0),
    help="Seconds until all must answer.",
)
@click.option("--announce", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Add the addresses to this list when ready; runs with engine.sampler=FILE use them.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print addresses and model as one line of JSON when ready.")
def model(
    path: str, extra: tuple[str, ...], replicas: int, backend: str, adapters: int, receive: int | None, host: str,
    allow_host: tuple[str, ...], token_file: Path | None, port: int, wait_s: float, announce: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Serve a model with vLLM, `transformers serve` or the embedded sampler, until interrupted.

    \b
    rlvr serve model checkpoints/global_step_100/actor/huggingface --replicas 2
    rlvr serve model nano --adapters 16                for engine.sampler of a recipe with lora_rank = 16
    rlvr serve model nano --adapters 16 --receive 9000   the same for a trainer that shares no folder
    rlvr serve model PATH -- --max-model-len 8192      words after -- go to the server
    """
    from rlvrlab.engines.openai.launch import TOKEN_ENV, Fleet, choose_backend
    from rlvrlab.engines.openai.roster import announce_at
    from rlvrlab.models import resolve

    for word in extra:
        if word.partition("=")[0].replace("_", "-") == "--api-key":
            refuse_spoken_token("--api-key", TOKEN_ENV)
    folder = str(resolve(path))
    chosen = choose_backend() if backend == "auto" else backend
    token = read_token(TOKEN_ENV, token_file)
    fleet = Fleet(folder, replicas, chosen, host, port, extra, adapters, token, receive, allow_host)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that a polite stop also stops the servers
    with suppress(KeyboardInterrupt), fleet:
        fleet.wait(wait_s)
        urls = [replica.url for replica in fleet.replicas]
        if announce is not None:
            announce_at(announce, fleet.listed)
        if as_json:
            facts = {"urls": urls, "model": fleet.served_name, "backend": fleet.backend}
            click.echo(json.dumps(facts | ({"adapters": fleet.door.url} if fleet.door else {})))
        else:
            asked = f"ask with: {' '.join(f'--server {url}' for url in urls)} --model {fleet.served_name}"
            named = f"engine.sampler={','.join(map(str, fleet.listed))}"
            usage = f"train with: {shlex.quote(named)}" if adapters else asked
            click.echo(f"{fleet.served_name} served by {fleet.backend}; {usage}")
        told: set[str] = set()
        while True:
            for replica in fleet.ended():
                if replica.url not in told:
                    told.add(replica.url)
                    click.echo(f"{replica.url} ended: {printable(replica.tail)}", err=True)
            if fleet.door is not None and fleet.door.url in told:
                raise InfrastructureError("the adapter door has ended, and the servers are of no use without it")
            if told >= set(urls):
                raise InfrastructureError("no server is left")
            time.sleep(1)


@command.command("report")
@click.argument("folder", default="experiments", type=click.Path(path_type=Path))
@click.option("--port", default=0, show_default=True, type=click.IntRange(0, 65535), help="0 picks a free one.")
@token_options("RLVR_REPORT_TOKEN")
@click.option("--json", "as_json", is_flag=True, help="Print address and token as one line of JSON when ready.")
def report(folder: Path, port: int, token_file: Path | None, as_json: bool) -> None:
    """Show the runs of a folder in a browser, live, until interrupted.

    It listens at 127.0.0.1 only, reads and writes nothing; without a token of yours it makes a new one. From another
    machine: `ssh -L PORT:127.0.0.1:PORT HOST`.

    \b
    rlvr serve report experiments
    """
    from rlvrlab.report.server.serving import Address, serve

    def announce(address: Address) -> None:
        words = f"{folder} at {address.url}\nCtrl-C ends it; the runs go on."
        click.echo(json.dumps(address._asdict()) if as_json else printable_lines(words))

    with suppress(KeyboardInterrupt):
        serve(folder, port, read_token("RLVR_REPORT_TOKEN", token_file), announce)
