"""rlvr data audit and manifest: is what a run will be trained and measured on what it should be?"""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from rlvrlab.cli.options import AS_JSON
from rlvrlab.cli.printing import print_json, printable


@click.command("audit")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("audit"), show_default=True)
@click.option("--threshold", default=0.5, show_default=True, help="Jaccard similarity that makes a near-duplicate.")
@click.option("--fail-on", type=click.Choice(["exact", "near", "passage"]), default="near", show_default=True,
              help="The weakest match of prompts across splits that counts as a leak.")  # fmt: skip
@click.option("--prompt", help="Column of the prompt, where it is not found by itself; so for the next two.")
@click.option("--solution", help="Column of the solution.")
@click.option("--tests", help="Column of the tests.")
@AS_JSON
def audit(
    files: tuple[Path, ...], output: Path, threshold: float, fail_on: str, as_json: bool, **columns: str | None
) -> int:
    """Look for duplicates within splits and leaks between them; exit code 1 when there is a leak.

    \b
    rlvr data audit data/gsm8k_train.jsonl data/gsm8k_test.jsonl
    """
    from rlvrlab.data.audit import KINDS
    from rlvrlab.data.audit import audit as examine
    from rlvrlab.data.audit_report import write_audit

    named = {part: column or "" for part, column in columns.items()}
    fails_on = KINDS[: KINDS.index(fail_on) + 1]
    with Console(stderr=True).status("") as status:
        audited = examine(files, columns=named, threshold=threshold, fails_on=fails_on, progress=status.update)  # type: ignore[arg-type]
        report = write_audit(audited, output)
    if as_json:
        facts = {"leaks": len(audited.leaks), "leaked_rows": audited.leaked_rows, "splits": audited.splits}
        print_json({"ok": not audited.leaks, "verdict": audited.verdict(), **facts, "pairs": audited.counts(),
                    "threshold": threshold, "crowded": audited.crowded, "report": str(report)})  # fmt: skip
    else:
        for row in audited.counts():
            kinds = ", ".join(f"{row[kind]} {kind}" for kind in KINDS if row[kind])
            click.echo(printable(f"  {row['left']} / {row['right']} by {row['part']}: {kinds}"))
        click.secho(printable(audited.verdict()), fg="red" if audited.leaks else "green")
        click.echo(f"report: {report}")
    return 1 if audited.leaks else 0


@click.command("manifest")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--renew", is_flag=True, help="Write it again although the file has changed.")
@AS_JSON
def manifest(files: tuple[Path, ...], renew: bool, as_json: bool) -> int:
    """Write down what prepared files hold, row by row; where that was done, check it: exit code 1 after a change."""
    from rlvrlab.data.manifest import differences, manifest_of, path_of, read_manifest, renewed, write_manifest
    from rlvrlab.data.rows import read_problems

    rows = []
    for path in files:
        problems, home = list(read_problems(path)), path_of(path)
        before = read_manifest(home) if home.is_file() else None
        if before and renew:
            now, before = renewed(before, path, problems), None
        else:
            now = before or manifest_of(path, problems)
        wrong = differences(before, problems) if before else []
        if before is None:
            write_manifest(now, home)
        state = "changed" if wrong else "agrees" if before else "written"
        header = {key: now.header()[key] for key in ("rows", "roles", "sha256")}
        rows.append({"file": str(path), "manifest": str(home), "state": state, **header, "differences": wrong})
    if as_json:
        print_json(rows)
    for row in rows if not as_json else []:
        roles = ", ".join(f"{count} {role}" for role, count in row["roles"].items())
        click.echo(printable(f"{row['file']}: {row['state']}, {roles}, sha256 {row['sha256'][:16]}"))
        for line in row["differences"][:20]:
            click.secho(printable(f"  {line}"), fg="red")
    return 1 if any(row["differences"] for row in rows) else 0
