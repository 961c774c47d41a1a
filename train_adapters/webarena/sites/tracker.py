"""The issue tracker: projects, issues, labels, milestones and comments."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from train_adapters.webarena.sites.forms import area, checks, choice, field, form
from train_adapters.webarena.sites.layout import frame, like, piece, search_form
from train_adapters.webarena.sites.markup import Html, Node, details, link, paragraphs, table, tag
from train_adapters.webarena.sites.seeding import TODAY
from train_adapters.webarena.sites.web import LONGEST_TEXT, Answer, Refused, Request, Site, go

SITE = Site("tracker", "Issue Tracker")

_ISSUES = (
    "SELECT issues.*, milestones.title AS milestone_title, developers.name AS assignee_name,"
    " (SELECT group_concat(name, ', ') FROM issue_labels JOIN labels ON id = label WHERE issue = issues.id) AS labels"
    " FROM issues LEFT JOIN milestones ON milestones.id = milestone LEFT JOIN developers ON user = assignee"
)


def _page(request: Request, title: str, *content: Node) -> Html:
    links = (("Projects", "/"), ("Assigned to me", "/mine"))
    return frame(SITE, request, title, links, search_form(SITE, "Search issues", request.asked("q")), content)


@SITE.get("/")
def projects(request: Request) -> Html:
    rows = request.rows("SELECT * FROM projects ORDER BY name")
    shown = [tag("article", link(row["name"], f"/tracker/project/{row['slug']}"), f" {row['about']}") for row in rows]
    return _page(request, "Projects", shown)


@SITE.get("/project/{slug}")
def project(request: Request, slug: str) -> Html:
    row = _project(request, slug)
    filters = {name: request.asked(name) for name in ("label", "assignee", "milestone")}
    filters["status"] = request.asked("status", "open")
    issues = request.rows(
        f"{_ISSUES} WHERE issues.project = ?1 AND (?2 = 'all' OR status = ?2) AND (?3 = '' OR assignee = ?3)"
        " AND (?4 = '' OR milestone_title = ?4) AND (?5 = '' OR EXISTS (SELECT 1 FROM issue_labels"
        " JOIN labels ON id = label WHERE issue = issues.id AND name = ?5)) ORDER BY issues.id",
        *(slug, filters["status"], filters["assignee"], filters["milestone"], filters["label"]),
    )
    path = f"/tracker/project/{slug}"
    ways = [link("New Issue", f"{path}/new"), " ", link("Milestones", f"{path}/milestones")]
    narrow = form(path, "Filter", _filter_fields(request, slug, filters), method="get")
    shown = piece(request, [_headline(one) for one in issues], path, 5)
    return _page(request, row["name"], tag("p", row["about"]), ways, narrow, shown)


def _project(request: Request, slug: str) -> sqlite3.Row:
    return request.row("SELECT * FROM projects WHERE slug = ?", slug)


def _filter_fields(request: Request, slug: str, filters: dict[str, str]) -> list[Html]:
    def options(texts: Sequence[str]) -> list[tuple[str, str]]:
        return [("", "any"), *((one, one) for one in texts)]

    people = [("", "any"), *_developers(request)]
    return [
        choice("Status", "status", [(one, one) for one in ("open", "closed", "all")], filters["status"]),
        choice("Label", "label", options([text for _, text in _labels(request, slug)]), filters["label"]),
        choice("Assignee", "assignee", people, filters["assignee"]),
        choice(
            "Milestone", "milestone", options([text for _, text in _milestones(request, slug)]), filters["milestone"]
        ),
    ]


def _developers(request: Request) -> list[tuple[str, str]]:
    return [(row["user"], row["name"]) for row in request.rows("SELECT * FROM developers ORDER BY name")]


def _labels(request: Request, slug: str) -> list[tuple[int, str]]:
    return [
        (row["id"], row["name"]) for row in request.rows("SELECT * FROM labels WHERE project = ? ORDER BY id", slug)
    ]


def _milestones(request: Request, slug: str) -> list[tuple[int, str]]:
    rows = request.rows("SELECT * FROM milestones WHERE project = ? ORDER BY id", slug)
    return [(row["id"], row["title"]) for row in rows]


def _headline(row: sqlite3.Row) -> Html:
    labels = f", labels: {row['labels']}" if row["labels"] else ""
    return tag("article", link(row["title"], f"/tracker/issue/{row['id']}"), f" #{row['id']}, {row['status']}{labels}")


@SITE.get("/mine")
def mine(request: Request) -> Html:
    rows = request.rows(f"{_ISSUES} WHERE status = 'open' AND assignee = ? ORDER BY issues.id", request.login)
    return _page(request, "Assigned to me", piece(request, [_headline(one) for one in rows], "/tracker/mine"))


@SITE.get("/search")
def search(request: Request) -> Html:
    text = request.asked("q").strip()
    rows = request.rows(
        f"{_ISSUES} WHERE issues.title LIKE ?1 ESCAPE '\\' OR issues.text LIKE ?1 ESCAPE '\\' ORDER BY issues.id",
        like(text),
    )
    return _page(request, f"Results for “{text}”", piece(request, [_headline(one) for one in rows], "/tracker/search"))


@SITE.get("/project/{slug}/milestones")
def milestones(request: Request, slug: str) -> Html:
    rows = request.rows(
        "SELECT *, (SELECT count(*) FROM issues WHERE milestone = milestones.id AND status = 'open') AS left"
        " FROM milestones WHERE project = ? ORDER BY id",
        slug,
    )
    name = _project(request, slug)["name"]
    shown = table(("Milestone", "Due", "Open issues"), [[row["title"], row["due"], row["left"]] for row in rows])
    return _page(request, f"Milestones of {name}", shown)


@SITE.get("/project/{slug}/new")
def new_issue(request: Request, slug: str) -> Html:
    name = _project(request, slug)["name"]
    fields = [field("Title", "title"), area("Description", "text"), _issue_fields(request, slug, None, None, ())]
    return _page(request, f"New issue in {name}", form(f"/tracker/project/{slug}/new", "Create Issue", fields))


def _issue_fields(
    request: Request, slug: str, assignee: str | None, milestone: int | None, labels: Sequence[int]
) -> list[Html]:
    return [
        choice("Assignee", "assignee", [("", "nobody"), *_developers(request)], assignee or ""),
        choice("Milestone", "milestone", [("", "none"), *_milestones(request, slug)], milestone or ""),
        checks("Labels", "label", _labels(request, slug), labels),
    ]


@SITE.post("/project/{slug}/new")
def add_issue(request: Request, slug: str) -> Answer:
    _project(request, slug)
    user, title = request.login, request.text("title", "Title")
    text = request.text("text", "Description", LONGEST_TEXT, optional=True)
    number = request.write(
        "INSERT INTO issues VALUES (NULL, ?, ?, ?, 'open', ?, NULL, NULL, ?)", slug, title, text, user, TODAY
    )
    _save_fields(request, number, slug)
    return go(f"/tracker/issue/{number}", notice="added")


def _save_fields(request: Request, number: int, slug: str) -> None:
    assignee, milestone = (request.text(name, name, optional=True) for name in ("assignee", "milestone"))
    labels = set(request.several("label"))
    known = {"", *(user for user, _ in _developers(request))}
    if (
        assignee not in known
        or milestone not in {"", *(str(one) for one, _ in _milestones(request, slug))}
        or not labels <= {str(one) for one, _ in _labels(request, slug)}
    ):
        raise Refused(400, "Assignee, milestone and labels must be some of those offered.")
    request.write(
        "UPDATE issues SET assignee = ?, milestone = ? WHERE id = ?",
        assignee or None,
        int(milestone or 0) or None,
        number,
    )
    request.write("DELETE FROM issue_labels WHERE issue = ?", number)
    for label in sorted(labels, key=int):
        request.write("INSERT INTO issue_labels VALUES (?, ?)", number, int(label))


@SITE.get("/issue/{number:int}")
def issue(request: Request, number: int) -> Html:
    row = _issue(request, number)
    home = request.row("SELECT * FROM projects WHERE slug = ?", row["project"])
    notes = request.rows(
        "SELECT notes.*, name FROM notes JOIN developers ON user = author WHERE issue = ? ORDER BY id", number
    )
    turn = form(f"/tracker/issue/{number}/turn", "Close Issue" if row["status"] == "open" else "Reopen Issue")
    reply = form(f"/tracker/issue/{number}/note", "Add Comment", area("Comment", "text"))
    return _page(
        request,
        row["title"],
        [_facts(request, row, home), tag("section", paragraphs(row["text"]), class_="text")],
        [link("Edit Issue", f"/tracker/issue/{number}/edit"), turn],
        [tag("h2", f"Comments ({len(notes)})"), [_note(one) for one in notes], reply],
    )


def _issue(request: Request, number: int) -> sqlite3.Row:
    return request.row(f"{_ISSUES} WHERE issues.id = ?", number)


def _facts(request: Request, row: sqlite3.Row, home: sqlite3.Row) -> Html:
    author = request.row("SELECT name FROM developers WHERE user = ?", row["author"])["name"]
    return details(
        [
            ("Project", link(home["name"], f"/tracker/project/{home['slug']}")),
            ("Status", tag("span", row["status"], class_="status")),
            ("Author", author),
            ("Assignee", tag("span", row["assignee_name"] or "nobody", class_="assignee")),
            ("Milestone", tag("span", row["milestone_title"] or "none", class_="milestone")),
            ("Labels", tag("span", row["labels"] or "none", class_="labels")),
            ("Created", row["date"]),
        ]
    )


def _note(row: sqlite3.Row) -> Html:
    return tag("article", tag("strong", row["name"]), f" on {row['date']}", paragraphs(row["text"]))


@SITE.post("/issue/{number:int}/turn")
def turn_issue(request: Request, number: int) -> Answer:
    """Close an open issue, open a closed one."""
    request.login  # noqa: B018 - only users may
    status = "closed" if _issue(request, number)["status"] == "open" else "open"
    request.write("UPDATE issues SET status = ? WHERE id = ?", status, number)
    return go(f"/tracker/issue/{number}", notice="saved")


@SITE.post("/issue/{number:int}/note")
def add_note(request: Request, number: int) -> Answer:
    user, text = request.login, request.text("text", "Comment", LONGEST_TEXT)
    _issue(request, number)
    request.write("INSERT INTO notes VALUES (NULL, ?, ?, ?, ?)", number, user, text, TODAY)
    return go(f"/tracker/issue/{number}", notice="added")


@SITE.get("/issue/{number:int}/edit")
def edit_issue(request: Request, number: int) -> Html:
    row = _issue(request, number)
    on = [one["label"] for one in request.rows("SELECT label FROM issue_labels WHERE issue = ?", number)]
    fields = [field("Title", "title", row["title"])]
    fields += _issue_fields(request, row["project"], row["assignee"], row["milestone"], on)
    return _page(request, f"Edit issue #{number}", form(f"/tracker/issue/{number}/edit", "Save Issue", fields))


@SITE.post("/issue/{number:int}/edit")
def save_issue(request: Request, number: int) -> Answer:
    request.login  # noqa: B018 - only users may
    slug = _issue(request, number)["project"]
    request.write("UPDATE issues SET title = ? WHERE id = ?", request.text("title", "Title"), number)
    _save_fields(request, number, slug)
    return go(f"/tracker/issue/{number}", notice="saved")
