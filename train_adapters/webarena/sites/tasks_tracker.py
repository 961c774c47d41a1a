"""Tasks of the issue tracker, and those that need two sites."""

from __future__ import annotations

from train_adapters.webarena.sites.layout import money
from train_adapters.webarena.sites.template import (
    Check,
    Seed,
    Template,
    added,
    answer,
    changed,
    each,
    ends_at,
    state,
)

_TRACKER, _START, _ME = ("tracker",), "__TRACKER__/", "emma"


def _project_page(seed: Seed, project: str) -> Check:
    return ends_at(f"__TRACKER__/project/{seed.project(project)}")


def _issue_page(seed: Seed, issue: str) -> Check:
    return ends_at(f"__TRACKER__/issue/{seed.issue(issue)}")


def _assignee(seed: Seed, issue: str) -> Check:
    query = "SELECT name FROM issues JOIN developers ON user = assignee WHERE title = ?"
    return answer(seed.one(query, issue))


def _due(seed: Seed, project: str, milestone: str) -> Check:
    query = "SELECT due FROM milestones WHERE project = ? AND title = ?"
    return answer(seed.one(query, seed.project(project), milestone))


def _labelled(seed: Seed, project: str, label: str) -> Check:
    query = (
        "SELECT count(*) FROM issues JOIN issue_labels ON issue = issues.id JOIN labels ON labels.id = label"
        " WHERE issues.project = ? AND name = ? AND status = 'open'"
    )
    return answer(seed.one(query, seed.project(project), label))


def _filtered(seed: Seed, project: str, status: str, label: str) -> Check:
    return ends_at(f"__TRACKER__/project/{seed.project(project)}?label={label}&status={status}")


def _closed(seed: Seed, issue: str) -> Check:
    return state(changed("issues", {"id": seed.issue(issue), "status": "open"}, status="closed"))


def _noted(seed: Seed, issue: str, text: str) -> Check:
    return state(added("notes", issue=seed.issue(issue), author=_ME, text=text))


def _assigned(seed: Seed, issue: str, developer: str) -> Check:
    user = seed.one("SELECT user FROM developers WHERE name = ?", developer)
    return state(changed("issues", {"id": seed.issue(issue)}, assignee=user))


def _label(seed: Seed, issue: str, label: str) -> Check:
    number = seed.issue(issue)
    query = "SELECT id FROM labels WHERE name = ? AND project = (SELECT project FROM issues WHERE id = ?)"
    return state(added("issue_labels", issue=number, label=seed.one(query, label, number)))


def _renamed(seed: Seed, issue: str, title: str) -> Check:
    return state(changed("issues", {"id": seed.issue(issue)}, title=title))


def _created(seed: Seed, project: str, title: str, label: str, milestone: str) -> Check:
    slug = seed.project(project)
    point = seed.one("SELECT id FROM milestones WHERE project = ? AND title = ?", slug, milestone)
    return state(
        added("issue_labels", label=seed.one("SELECT id FROM labels WHERE project = ? AND name = ?", slug, label)),
        added("issues", project=slug, title=title, milestone=point, author=_ME, assignee=None, status="open"),
    )


def _reported_price(seed: Seed, product: str, project: str, title: str) -> Check:
    cost = money(seed.one("SELECT price FROM products WHERE name = ?", product))
    return state(added("issues", project=seed.project(project), title=title, text=cost, author=_ME, status="open"))


TEMPLATES = (
    Template(
        *("tracker-open-project", "train", _TRACKER, _START, "Open the project {{project}}."),
        each("project", "Storefront", "Handbook", "Mobile App"),
        *(_project_page, 2),
    ),
    Template(
        *("tracker-open-issue", "train", _TRACKER, _START, "Search for the issue “{{issue}}” and open it."),
        each("issue", "Typo on the front page", "Fingerprint login"),
        *(_issue_page, 3),
    ),
    Template(
        "tracker-assignee",
        *("train", _TRACKER, _START, "Who is assigned to the issue “{{issue}}”? Exit with the full name only."),
        each("issue", "Search is very slow", "Share a product with friends"),
        *(_assignee, 3),
    ),
    Template(
        *("tracker-due", "val", _TRACKER, _START),
        "When is the milestone {{milestone}} of {{project}} due? Exit with the date as it is written there.",
        [{"project": "Warehouse", "milestone": "2.0"}, {"project": "Handbook", "milestone": "1.0"}],
        *(_due, 3),
    ),
    Template(
        *("tracker-count", "test", _TRACKER, _START),
        "How many open issues of {{project}} have the label {{label}}? Exit with the number only.",
        [{"project": "Mobile App", "label": "feature"}, {"project": "Storefront", "label": "documentation"}],
        *(_labelled, 4),
    ),
    Template(
        *("tracker-filter", "test", _TRACKER, _START),
        "Show the issues of {{project}} with the status {{status}} and the label {{label}}.",
        [
            {"project": "Warehouse", "status": "closed", "label": "bug"},
            {"project": "Storefront", "status": "all", "label": "performance"},
        ],
        *(_filtered, 5),
    ),
    Template(
        *("tracker-close", "train", _TRACKER, _START, "Close the issue “{{issue}}”."),
        each("issue", "Search ignores plural forms", "Back button leaves the app"),
        *(_closed, 4, True),
    ),
    Template(
        *("tracker-comment", "train", _TRACKER, _START, "Comment on the issue “{{issue}}” with “{{text}}”."),
        [
            {"issue": "Battery drain in background", "text": "Fixed in the next build."},
            {"issue": "Broken links in the index", "text": "I will take care of it."},
        ],
        *(_noted, 5, True),
    ),
    Template(
        *("tracker-assign", "test", _TRACKER, _START, "Assign the issue “{{issue}}” to {{developer}}."),
        [
            {"issue": "Stock goes negative", "developer": "Sofia Rossi"},
            {"issue": "Text cut off in large font", "developer": "Bea Novak"},
        ],
        *(_assigned, 6, True),
    ),
    Template(
        *("tracker-label", "val", _TRACKER, _START, "Add the label {{label}} to the issue “{{issue}}”."),
        [
            {"issue": "Time zone of delivery dates", "label": "bug"},
            {"issue": "Smaller download size", "label": "good first issue"},
        ],
        *(_label, 6, True),
    ),
    Template(
        *("tracker-rename", "train", _TRACKER, _START, "Change the title of the issue “{{issue}}” to “{{title}}”."),
        [
            {"issue": "Add a glossary", "title": "Add a glossary of ten words"},
            {"issue": "Crash on empty category", "title": "Error page for an empty category"},
        ],
        *(_renamed, 6, True),
    ),
    Template(
        *("tracker-create", "train", _TRACKER, _START),
        "Create an issue in {{project}} with the title “{{title}}”, the label {{label}} and milestone {{milestone}}.",
        [
            {"project": "Warehouse", "title": "Ladder is broken", "label": "bug", "milestone": "1.1"},
            {"project": "Handbook", "title": "Explain parental leave", "label": "documentation", "milestone": "2.0"},
        ],
        *(_created, 7, True),
    ),
    Template(
        *("both-price-report", "test", ("shop", "tracker"), "__HOME__/"),
        "Find the price of the {{product}} in the shop. Then create an issue in the project {{project}} of the issue"
        " tracker with the title “{{title}}” and the price, such as $12.50, as its description.",
        [
            {"product": "Brass Desk Lamp", "project": "Storefront", "title": "Check the lamp price"},
            {"product": "Plush Fox", "project": "Mobile App", "title": "Check the fox price"},
        ],
        *(_reported_price, 10, True),
    ),
)
