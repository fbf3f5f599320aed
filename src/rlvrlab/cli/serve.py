"""rlvr serve: long-running services of the laboratory."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

import click

from rlvrlab.errors import UserError


@click.group("serve", short_help="Serve the judge.")
def command() -> None:
    """Serve the judge."""


@command.command("judge")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address; others than this machine need a token.")
@click.option("--port", default=8080, show_default=True, help="0 picks a free one.")
@click.option("--token", envvar="RLVR_JUDGE_TOKEN", help="Required of clients as `Authorization: Bearer …`.")
@click.option("--workers", type=int, help="Programs at once; default: one more than cores.")
@click.option("--queue", default=256, show_default=True, help="Jobs beyond which the answer is 429.")
@click.option("--isolation", help="landlock, bwrap or weak.")
@click.option("--allow-weak", is_flag=True, help="Accept a machine that cannot isolate.")
@click.option("--json", "as_json", is_flag=True, help="Print address and workers as one line of JSON when ready.")
def judge(
    host: str,
    port: int,
    token: str | None,
    workers: int | None,
    queue: int,
    isolation: str | None,
    allow_weak: bool,
    as_json: bool,
) -> int:
    """Speak SandboxFusion: /run_code, /submit, /v1/ping; and /judge for whole batches."""
    from rlvrlab.judge.fusion.server import JudgeServer
    from rlvrlab.judge.isolation import chosen_level
    from rlvrlab.judge.orders import Image
    from rlvrlab.judge.pool import Pool

    image = Image(chosen_level(isolation, allow_weak))
    pool = Pool(image, workers) if workers else Pool(image)
    server = JudgeServer(pool, token, host, port, queue)

    async def run() -> None:
        try:
            await server.start()
        except OSError as error:
            where = f"{host}:{port}"
            raise UserError(f"cannot listen at {where} ({error.strerror}); choose another --port, 0 for any") from None
        facts = {"url": f"http://{server.host}:{server.port}", "workers": pool.size, "isolation": image.isolation}
        words = f"judge at {facts['url']} with {pool.size} workers ({image.isolation})"
        click.echo(json.dumps(facts) if as_json else words)
        try:
            await asyncio.Event().wait()
        finally:
            await server.stop()

    with suppress(KeyboardInterrupt):
        asyncio.run(run())
    return 0
