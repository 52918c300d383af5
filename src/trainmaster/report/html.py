"""The report: one HTML file that opens offline.

Charts are drawn here as SVG, so that everything but sorting tables and leafing through
the lanes works without scripts. Nothing is fetched: a content security policy in the
page forbids it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainmaster.model.errors import OutputError

from . import text
from .parts import side_by_side
from .records import Records, load_records


def write_report(records: Records | str | Path, path: str | Path) -> None:
    """Write the report of a result folder, or of records loaded from one.

    The file appears whole or not at all: it is written under a temporary name first.

    Raises:
        InputError: the records are faulty.
        OutputError: the file can't be written.
    """
    page = render(records if isinstance(records, Records) else load_records(records))
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        try:
            temporary.write_text(page, encoding="utf-8", newline="\n")
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OutputError(f"{path}: can't be written: {error.strerror} (name another path)") from error


def render(records: Records) -> str:
    """The page as text."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("trainmaster.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(
        unbroken=text.unbroken,
        side_by_side=side_by_side,
        percent=text.percent,
        amount=text.count,
        duration=text.duration,
    )
    return environment.get_template("report.html.j2").render(_context(records))


def _context(records: Records) -> Mapping[str, Any]:
    from . import effects, glossary, reproduce, samples, sections, setting, spread, story, sweep
    from .measures import BY_FIGURE, present
    from .parts import colours_of, measure_bars, numbers, ranking

    comparison = story.compare(records)
    colours = colours_of(comparison, records.runs)
    measures = present(records.runs)
    winner_jobs = records.jobs[comparison.winner.key]
    by_size = spread.waits_by(records, comparison, spread.by_size)
    by_tenant = spread.waits_by(records, comparison, spread.by_tenant(winner_jobs))
    compared = comparison.winner is not comparison.baseline
    later = story.later_share(records, comparison) if compared else None
    extra = [
        (title, [panel for name in names if (panel := measure_bars(BY_FIGURE[name], comparison, colours))])
        for title, names in (
            ("Deadlines", ("miss_rate", "weighted_miss_rate", "broken")),
            ("Fairness between tenants", ("fairness_loss", "ltgf_min", "jain")),
        )
    ]
    return {
        "records": records,
        "comparison": comparison,
        "colours": colours,
        "headline": story.headline(comparison),
        "price": story.price(comparison, later),
        "about_baseline": story.about_baseline(comparison),
        "facts": setting.facts(records, comparison),
        "mix": spread.mix(winner_jobs),
        "about": {run.policy: glossary.about_policy(run.policy) for run in comparison.runs},
        "window": story.window(records, comparison.winner),
        "unfinished": [warning for run in comparison.runs if (warning := story.unfinished(run))],
        "best": story.best_at(comparison.runs),
        "ranking": ranking(comparison, colours, records.trace.recorded),
        "recorded": story.recorded_waits(records, comparison),
        "small_sample": samples.small_sample(comparison.winner),
        "tradeoffs": sections.tradeoffs(comparison, colours),
        "jct": spread.jct_figure(records, comparison, colours),
        "size_panels": spread.size_panels(by_size, comparison, colours),
        "size_table": spread.waits_table("Waiting by size", "size", by_size, comparison),
        "tenants": spread.tenant_figure(by_tenant, comparison, colours),
        "effects": effects.effects(records, comparison),
        "timeline": sections.timeline(records, comparison, colours),
        "lanes": sections.lane_section(records, comparison),
        "sweep": sweep.sweep(records, comparison, colours),
        "extra": [(title, panels) for title, panels in extra if panels],
        "numbers": numbers(records.runs, measures),
        "measures": measures,
        "command": reproduce.folded(reproduce.command(records)),
    }
