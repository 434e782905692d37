"""`forebay plan calibration`: published figures and what the model says of each."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from forebay.plan.answer import Calibration, CalibrationRow


@click.command(
    "calibration",
    epilog="""\b
Example:
  forebay plan calibration --html calibration.html""",
)
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), help="Write tables and pictures as one page."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(html: Path | None, as_json: bool) -> None:
    """Show each published figure with what the model predicts, and the ratio.

    A figure is predicted by a model that was fitted without its own experiment. It takes some seconds.
    """
    from forebay.plan.calibration import published_judged
    from forebay.plan.unpredicted import UNPREDICTED

    judged = published_judged()
    if as_json:
        found = [
            CalibrationRow(
                id=one.row.id,
                experiment=one.row.group,
                machine=one.machine,
                kind=one.row.kind,
                unit=one.row.unit,
                published=one.row.published,
                predicted=one.left_out,
                ratio=one.ratio,
                fitted=one.fitted,
                holds=one.holds,
            )
            for one in judged
        ]
        answer = Calibration(rows=found, unpredicted=UNPREDICTED)
        click.echo(msgspec.json.encode(answer).decode())
    else:
        from forebay.report.planning.terminal import console, print_calibration

        print_calibration(console(), judged)
    if html:
        from forebay.cli.plan.sweep import write_page
        from forebay.report.planning.page import calibration_page

        write_page(html, calibration_page(judged))
