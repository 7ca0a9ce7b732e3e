"""The page: studies as one HTML file that needs nothing else, neither network nor library.

Whatever comes from a result goes through `safe`; a policy in the page's head lets no script run but its own.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from importlib.resources import files
from itertools import repeat

from sparc import __version__
from sparc.report.charts import WIDTH
from sparc.report.colours import DARK, LIGHT
from sparc.report.comparison import ACCURACIES, COLUMNS, MAIN, Column, Row, grouped, value_text
from sparc.report.figures import (
    COST_CHARTS,
    Figure,
    end_figures,
    loss_figures,
    row_figures,
    stage_figures,
    sweep_figures,
)
from sparc.report.labels import METRIC_SYMBOLS, SETTING_TITLES
from sparc.report.marks import mark
from sparc.report.study import Study, epochs_text
from sparc.report.svg import icon, inline, safe
from sparc.text import counted, percent

TASK_IL = tuple(column for column in COLUMNS if column.name.startswith("task_il.") and column not in ACCURACIES)
VERSIONS = ("sparc", "torch", "python")
FEW = 6
"""Methods from which on they are counted rather than named, and can be filtered."""
NO_CLASS_IL = "It has no Class-IL accuracy: at test time it must be told which task a picture belongs to."


def page(studies: Sequence[Study], left_out: Sequence[str] = ()) -> str:
    """The same studies give the same page, to the letter; `left_out` are sentences on what is not in them."""
    script = _file("page.js").replace("/*COLOURS*/", json.dumps(LIGHT)[1:-1])
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    style = _file("page.css").replace("/*LIGHT*/", _variables(LIGHT)).replace("/*DARK*/", _variables(DARK))
    title = ", ".join(dict.fromkeys(safe(study.benchmark) for study in studies))
    several = len(studies) > 1
    return f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'">
<title>{title}: what is learned, what is kept</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{title}: what is learned, what is kept</h1>
{_contents(studies) if several else ""}{_left_out(left_out)}</header>
<main>
{"".join(_study(study, number, several) for number, study in enumerate(studies, 1))}</main>
<footer><p>Made by <code>sparc report</code>, version {safe(__version__)}, from what the runs left behind.</p></footer>
<p id="status" class="unseen" role="status"></p>
<script>{script}</script>
</body>
</html>
"""


def _contents(studies: Sequence[Study]) -> str:
    links = (
        f'<li><a href="#study-{number}">{safe(study.in_a_line())}</a></li>' for number, study in enumerate(studies, 1)
    )
    return f"<nav><ul>{''.join(links)}</ul></nav>\n"


def _left_out(sentences: Sequence[str]) -> str:
    if not sentences:
        return ""
    items = "".join(f"<li>{safe(sentence)}</li>" for sentence in sentences)
    return f"<p>Not in the tables and figures below:</p>\n<ul>{items}</ul>\n"


def _study(study: Study, number: int, several: bool) -> str:
    level = 3 if several else 2
    key = f"study-{number}"
    parts = [
        _facts(study),
        _heading(level, "Comparison"),
        _filter(study.rows),
        _comparison(study, MAIN, "Comparison of all methods"),
        '<p class="hint">Green and bold is best, upper bounds apart; a lead within the deviations, or of one seed, may '
        "be chance. A click on a column’s title sorts by it, one on a method’s name makes it stand out in charts.</p>",
        _folded("The other Task-IL metrics", _comparison(study, TASK_IL, "Task-IL metrics of all methods")),
        _folded("What the columns mean", _meanings()),
        _heading(level, "Task after task"),
        _figures(stage_figures(study), key),
        _heading(level, "Each task at the end"),
        _figures(end_figures(study), key),
        *([_heading(level, "By setting"), _apart(_figures(swept, key))] if (swept := sweep_figures(study)) else ()),
        *(
            part
            for charts in COST_CHARTS
            for part in (_heading(level, f"{charts.title} against accuracy"), _figures(charts.drawn(study), key))
        ),
        _heading(level, "Method by method"),
        "<p>A column that darkens downwards is a task that is being forgotten.</p>\n",
        *(_row(study, index, level + 1, key) for index in range(len(study.rows))),
    ]
    if losses := loss_figures(study):
        parts += [_heading(level, "Training"), _figures(losses, key)]
    parts += [
        _heading(level, "Details"),
        _folded("Settings", _settings(study.rows)),
        _folded("Tasks and their classes", _tasks(study)),
        _folded("Every run", _runs(study)),
    ]
    title = _heading(2, safe(study.in_a_line())) if several else ""
    return f'<section class="study" id="{key}">\n{title}{"".join(parts)}</section>\n'


def _facts(study: Study) -> str:
    first, results = study.first, [result for row in study.rows for result in row.results]
    sizes = sorted(set(first.sizes))
    classes = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} – {sizes[-1]}"
    data = first.data
    facts = {
        **{f"best {column.title}": _best(study.rows, column) for column in ACCURACIES},
        "stream": f"{counted(len(first.sizes), 'task')} of {classes} {'class' if classes == '1' else 'classes'}",
        "pictures": _pictures(data.get("train"), data.get("test"), data.get("image_size")),
        "methods": _methods(study.rows),
        "seed numbers": _each(", ".join(map(str, row.seeds)) for row in study.rows),
        "epochs a task": epochs_text(study.rows),
        "versions": _each(_versions(result.environment) for result in results),
        "machine": _each(_machine(result.environment) for result in results),
        "left out": f"{counted(study.repeated, 'run')} that repeated another" if study.repeated else "",
    }
    items = (f"<li><b>{safe(name)}</b>{safe(value)}</li>" for name, value in facts.items() if value)
    return f'<ul class="facts">{"".join(items)}</ul>\n'


def _methods(rows: Sequence[Row]) -> str:
    """The methods' names if they are few, and else their number."""
    if len(rows) < FEW:
        return "; ".join(row.label for row in rows)
    count = len({row.method for row in rows})
    return f"{count}" if count == len(rows) else f"{count} with {len(rows)} settings"


def _best(rows: Sequence[Row], column: Column) -> str:
    cells = [(row.label, row.cells[column.name]) for row in rows]
    return " and ".join(f"{label}: {column.text(cell)} %" for label, cell in cells if cell.best)


def _pictures(train: object, test: object, size: object) -> str:
    parts = [f"{number:,} to {what}" for number, what in ((train, "learn"), (test, "test")) if isinstance(number, int)]
    if isinstance(size, list):
        parts.append(f"{' × '.join(map(value_text, size))} pixels")
    return ", ".join(parts)


def _versions(environment: dict[str, object]) -> str:
    return ", ".join(f"{name} {value_text(environment[name])}" for name in VERSIONS if name in environment)


def _machine(environment: dict[str, object]) -> str:
    parts = [value_text(environment[name]) for name in ("machine", "device") if name in environment]
    threads = environment.get("threads")
    return ", ".join([*parts, *([counted(threads, "thread")] if isinstance(threads, int) else [])])


def _each(values: Iterable[str]) -> str:
    """All different values, in the order in which they come."""
    return "; ".join(dict.fromkeys(value for value in values if value))


def _filter(rows: Sequence[Row]) -> str:
    """A control by which a script shows only some of many methods."""
    if len(rows) < FEW:
        return ""
    kinds = sorted({_kind(row) for row in rows} - {""})
    chips = "".join(
        f'<label class="chip"><input type="checkbox" value="{safe(kind)}">{safe(kind)}</label>' for kind in kinds
    )
    return (
        '<div class="filter" role="group" aria-label="Show only some methods">'
        '<label>Show only <input type="search" placeholder="part of a name"></label>'
        f"{chips if len(kinds) > 1 else ''}<output></output></div>\n"
    )


def _kind(row: Row) -> str:
    return row.results[0].kind


def _comparison(study: Study, columns: Sequence[Column], label: str) -> str:
    groups = grouped(columns)
    group_titles = "".join(
        f'<th scope="colgroup" colspan="{len(inner)}" class="group">{safe(group)}</th>' for group, inner in groups
    )
    method, seeds = _sortable("Method", "ascending", ' data-sort="text"'), _sortable("Seeds", "descending")
    titles = "".join(_column_title(column, column is inner[0]) for _, inner in groups for column in inner)
    rows = "".join(
        f'<tr data-series="{index}" data-kind="{safe(_kind(row))}">{_row_title(row, index)}'
        f'<td data-value="{len(row.seeds)}">{len(row.seeds)}</td>'
        f"{''.join(_cell(column, row) for column in columns)}</tr>\n"
        for index, row in enumerate(study.rows)
    )
    table = (
        f'<table class="sortable"><thead><tr><td colspan="2"></td>{group_titles}</tr>\n'
        f"<tr>{method}{seeds}{titles}</tr></thead>\n<tbody>\n{rows}</tbody></table>"
    )
    return _scrolling(label, table)


def _row_title(row: Row, index: int) -> str:
    sign = icon(mark(index, 0, 0, radius=5), 16)
    return f'<th scope="row"><button type="button" aria-pressed="false">{sign}{safe(row.label)}</button></th>'


def _column_title(column: Column, starts: bool) -> str:
    kind = ' class="start"' if starts else ""
    first = "descending" if column.better == "higher" else "ascending"
    return _sortable(f"{safe(column.short)}&nbsp;{column.arrow}", first, f'{kind} title="{safe(column.meaning)}"')


def _sortable(title: str, first: str, more: str = "") -> str:
    """The title of a column that can be sorted by, at first in this direction."""
    button = f'<button type="button">{title}</button>'
    return f'<th scope="col" aria-sort="none" data-first="{first}"{more}>{button}</th>'


def _cell(column: Column, row: Row) -> str:
    cell = row.cells[column.name]
    mean, spread = column.parts(cell)
    spread = f' <span class="spread">± {safe(spread)}</span>' if spread else ""
    names, style = ["best"] if cell.best else [], ""
    if column.name.endswith(".accuracy") and cell.mean is not None:
        names.append("share")
        style = f' style="--share:{cell.mean:.1f}%"'
    kind = f' class="{" ".join(names)}"' if names else ""
    value = "" if cell.mean is None else f"{cell.mean:.6g}"
    return f'<td data-value="{value}"{kind}{style}>{safe(mean)}{spread}</td>'


def _meanings() -> str:
    items = (f"<dt>{safe(column.title)} {column.arrow}</dt><dd>{safe(column.meaning)}</dd>" for column in COLUMNS)
    return f"<dl>{''.join(items)}</dl>\n"


def _row(study: Study, index: int, level: int, key: str) -> str:
    row = study.rows[index]
    note = "" if row.cells["class_il.accuracy"].mean is not None else f'<p class="undefined">{NO_CLASS_IL}</p>\n'
    content = f"{_heading(level, safe(row.label))}{note}{_figures(row_figures(study, index), key)}"
    return f'<section data-series="{index}">\n{content}</section>\n'


def _figures(figures: Sequence[Figure], key: str) -> str:
    kind = "figures wide" if any(figure.drawing.width > WIDTH for figure in figures) else "figures"
    return f'<div class="{kind}">\n{"".join(_figure(figure, key) for figure in figures)}</div>\n'


def _apart(figures: str) -> str:
    """Out of the filter's reach: a line of these is of several rows."""
    return f"<div>\n{figures}</div>\n"


def _figure(figure: Figure, key: str) -> str:
    drawn = inline(figure.drawing, f"{key}-{figure.name}")
    if figure.drawing.width > WIDTH:
        drawn = _scrolling(figure.drawing.title, f'<div style="min-width:{figure.drawing.width:.0f}px">{drawn}</div>')
    return (
        f"<figure>\n{drawn}\n<figcaption><span>{safe(figure.caption)}</span>"
        f'<button type="button" class="download" data-name="{safe(figure.name)}" '
        f'aria-label="Download as SVG: {safe(figure.drawing.title)}">SVG ↓</button></figcaption>\n</figure>\n'
    )


def _settings(rows: Sequence[Row]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row.settings))
    lines = [
        [row.label, *(value_text(row.settings[name]) if name in row.settings else "" for name in names)] for row in rows
    ]
    titles = ["method", *(name.replace("_", " ") for name in names)]
    return _text_table("Settings of all methods", titles, lines, range(len(rows)))


def _tasks(study: Study) -> str:
    orders = {tuple(result.class_names) for row in study.rows for result in row.results}
    if len(orders) > 1:
        return "<p>The runs met the classes in different orders.</p>\n"
    names, lines, start = study.first.class_names, [], 0
    for task, size in enumerate(study.first.sizes, 1):
        lines.append([str(task), ", ".join(names[start : start + size])])
        start += size
    return _text_table("Classes of each task", ["task", "classes"], lines)


def _runs(study: Study) -> str:
    lines, series = [], []
    for index, row in enumerate(study.rows):
        for run in row.runs:
            numbers = [percent(column.value(run.measured)) for column in ACCURACIES]
            digest = run.measured.state_sha256[:12]
            lines.append([row.label, str(run.config["seed"]), *numbers, run.folder.name, digest])
            series.append(index)
    titles = ["method", "seed", *(f"{title} {METRIC_SYMBOLS['accuracy']}" for title in SETTING_TITLES.values())]
    return _text_table("Every run", [*titles, "folder", "digest of the state"], lines, series)


def _text_table(
    label: str, titles: Sequence[str], lines: Iterable[Sequence[str]], series: Iterable[int | None] = repeat(None)
) -> str:
    """A table of texts, each line of a method's series or of none."""
    header = "".join(f'<th scope="col">{safe(name)}</th>' for name in titles)
    body = "".join(
        f"<tr{_series(index)}>{''.join(f'<td>{safe(value)}</td>' for value in line)}</tr>\n"
        for line, index in zip(lines, series, strict=False)
    )
    table = f'<table class="texts"><thead><tr>{header}</tr></thead>\n<tbody>\n{body}</tbody></table>'
    return _scrolling(label, table)


def _series(index: int | None) -> str:
    return "" if index is None else f' data-series="{index}"'


def _scrolling(label: str, content: str) -> str:
    """Content that may be too wide, in a box that scrolls by itself, also by keyboard."""
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{safe(label)}">{content}</div>\n'


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{safe(title)}</summary>\n{content}</details>\n"


def _heading(level: int, content: str) -> str:
    return f"<h{level}>{content}</h{level}>\n"


def _variables(palette: dict[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in palette.items())


def _file(name: str) -> str:
    return files("sparc.report").joinpath(name).read_text(encoding="utf-8")
