"""The forum: boards, posts, votes, comments and members."""

from __future__ import annotations

import sqlite3

from train_adapters.webarena.sites.forms import area, choice, field, form
from train_adapters.webarena.sites.layout import frame, like, piece, search_form
from train_adapters.webarena.sites.markup import Html, Node, details, link, paragraphs, tag
from train_adapters.webarena.sites.seeding import TODAY
from train_adapters.webarena.sites.web import LONGEST_TEXT, Answer, Refused, Request, Site, go

SITE = Site("forum", "Forum")

_ORDERS = {"new": "date DESC, id DESC", "top": "score DESC, id", "comments": "comments DESC, id"}
_ORDER_NAMES = (("new", "New"), ("top", "Top score"), ("comments", "Most comments"))
_POSTS = (
    "SELECT posts.*, base_score + (SELECT coalesce(sum(value), 0) FROM votes WHERE post = posts.id) AS score,"
    " (SELECT count(*) FROM comments WHERE post = posts.id) AS comments FROM posts"
)


def _page(request: Request, title: str, *content: Node) -> Html:
    links = [("Boards", "/"), ("Submit Post", "/submit")]
    if request.user is not None:
        links += [("My Profile", f"/user/{request.user}"), ("Settings", "/settings")]
    return frame(SITE, request, title, links, search_form(SITE, "Search posts", request.asked("q")), content)


@SITE.get("/")
def boards(request: Request) -> Html:
    rows = request.rows("SELECT * FROM boards ORDER BY title")
    return _page(request, "Boards", [tag("article", _board_link(row), f" {row['about']}") for row in rows])


def _board_link(row: sqlite3.Row) -> Html:
    return link(row["title"], f"/forum/board/{row['name']}")


@SITE.get("/board/{name}")
def board(request: Request, name: str) -> Html:
    row = request.row("SELECT * FROM boards WHERE name = ?", name)
    order = request.asked("sort", "new")
    posts = request.rows(f"{_POSTS} WHERE board = ? ORDER BY {_ORDERS.get(order, _ORDERS['new'])}", name)
    path = f"/forum/board/{name}"
    sorting = form(path, "Sort", choice("Sort by", "sort", _ORDER_NAMES, order), method="get")
    about = [tag("p", row["about"]), _subscription(request, name), sorting]
    return _page(request, row["title"], about, piece(request, [_headline(one) for one in posts], path, 4))


def _headline(row: sqlite3.Row) -> Html:
    facts = f" by {row['author']}, {row['date']}, score {row['score']}, {row['comments']} comments"
    return tag("article", link(row["title"], f"/forum/post/{row['id']}"), facts)


def _subscription(request: Request, name: str) -> Html | None:
    if request.user is None:
        return None
    on = request.value("SELECT count(*) FROM subscriptions WHERE member = ? AND board = ?", request.user, name)
    return form(f"/forum/board/{name}/{'leave' if on else 'join'}", "Unsubscribe" if on else "Subscribe")


@SITE.post("/board/{name}/join")
def join_board(request: Request, name: str) -> Answer:
    request.row("SELECT 1 FROM boards WHERE name = ?", name)
    request.write("INSERT OR IGNORE INTO subscriptions VALUES (?, ?)", request.login, name)
    return go(f"/forum/board/{name}", notice="saved")


@SITE.post("/board/{name}/leave")
def leave_board(request: Request, name: str) -> Answer:
    request.write("DELETE FROM subscriptions WHERE member = ? AND board = ?", request.login, name)
    return go(f"/forum/board/{name}", notice="saved")


@SITE.get("/search")
def search(request: Request) -> Html:
    text = request.asked("q").strip()
    found = request.rows(
        f"{_POSTS} WHERE title LIKE ?1 ESCAPE '\\' OR text LIKE ?1 ESCAPE '\\' ORDER BY id", like(text)
    )
    return _page(request, f"Results for “{text}”", piece(request, [_headline(one) for one in found], "/forum/search"))


@SITE.get("/post/{number:int}")
def post(request: Request, number: int) -> Html:
    row = _post(request, number)
    comments = request.rows("SELECT * FROM comments WHERE post = ? ORDER BY id", number)
    board = request.row("SELECT * FROM boards WHERE name = ?", row["board"])
    facts: list[tuple[str, Node]] = [("Board", _board_link(board)), ("Author", _member_link(row["author"]))]
    facts += [("Date", row["date"]), ("Score", tag("span", row["score"], class_="score"))]
    votes = [form(f"/forum/post/{number}/{way}vote", f"{way.capitalize()}vote") for way in ("up", "down")]
    delete = form(f"/forum/post/{number}/delete", "Delete Post") if row["author"] == request.user else None
    reply = form(f"/forum/post/{number}/comment", "Add Comment", area("Comment", "text"))
    return _page(
        request,
        row["title"],
        [details(facts), tag("section", paragraphs(row["text"]), class_="text"), votes, delete],
        [tag("h2", f"Comments ({len(comments)})"), [_comment(request, one) for one in comments], reply],
    )


def _post(request: Request, number: int) -> sqlite3.Row:
    return request.row(f"{_POSTS} WHERE id = ?", number)


def _member_link(name: str) -> Html:
    return link(name, f"/forum/user/{name}")


def _comment(request: Request, row: sqlite3.Row) -> Html:
    own = row["author"] == request.user
    delete = form(f"/forum/comment/{row['id']}/delete", "Delete Comment") if own else None
    return tag("article", _member_link(row["author"]), f" on {row['date']}", paragraphs(row["text"]), delete)


@SITE.post("/post/{number:int}/upvote")
def upvote(request: Request, number: int) -> Answer:
    return _vote(request, number, 1)


@SITE.post("/post/{number:int}/downvote")
def downvote(request: Request, number: int) -> Answer:
    return _vote(request, number, -1)


def _vote(request: Request, number: int, value: int) -> Answer:
    """Vote; the same vote again takes it back."""
    user = request.login
    _post(request, number)
    before = request.rows("SELECT value FROM votes WHERE member = ? AND post = ?", user, number)
    request.write("DELETE FROM votes WHERE member = ? AND post = ?", user, number)
    if not before or before[0]["value"] != value:
        request.write("INSERT INTO votes VALUES (?, ?, ?)", user, number, value)
    return go(f"/forum/post/{number}", notice="saved")


@SITE.post("/post/{number:int}/comment")
def add_comment(request: Request, number: int) -> Answer:
    user, text = request.login, request.text("text", "Comment", LONGEST_TEXT)
    _post(request, number)
    request.write("INSERT INTO comments VALUES (NULL, ?, ?, ?, ?)", number, user, text, TODAY)
    return go(f"/forum/post/{number}", notice="added")


@SITE.post("/comment/{number:int}/delete")
def delete_comment(request: Request, number: int) -> Answer:
    row = request.row("SELECT * FROM comments WHERE id = ?", number)
    _check_author(request, row)
    request.write("DELETE FROM comments WHERE id = ?", number)
    return go(f"/forum/post/{row['post']}", notice="removed")


@SITE.post("/post/{number:int}/delete")
def delete_post(request: Request, number: int) -> Answer:
    row = _post(request, number)
    _check_author(request, row)
    request.write("DELETE FROM posts WHERE id = ?", number)
    return go(f"/forum/board/{row['board']}", notice="removed")


def _check_author(request: Request, row: sqlite3.Row) -> None:
    if row["author"] != request.login:
        raise Refused(403, "Only the author may do this.")


@SITE.get("/submit")
def submit(request: Request) -> Html:
    rows = request.rows("SELECT * FROM boards ORDER BY title")
    fields = [
        choice("Board", "board", [(row["name"], row["title"]) for row in rows]),
        field("Title", "title"),
        area("Text", "text"),
    ]
    return _page(request, "Submit a post", form("/forum/submit", "Create Post", fields))


@SITE.post("/submit")
def add_post(request: Request) -> Answer:
    names = [row["name"] for row in request.rows("SELECT name FROM boards")]
    board, title = request.one_of("board", "Board", names), request.text("title", "Title")
    text = request.text("text", "Text", LONGEST_TEXT, optional=True)
    number = request.write(
        "INSERT INTO posts VALUES (NULL, ?, ?, ?, ?, ?, 1)", board, request.login, title, text, TODAY
    )
    return go(f"/forum/post/{number}", notice="added")


@SITE.get("/user/{name}")
def member(request: Request, name: str) -> Html:
    row = request.row("SELECT * FROM members WHERE name = ?", name)
    posts = request.rows(f"{_POSTS} WHERE author = ? ORDER BY id", name)
    about = [tag("p", f"Member since {row['joined']}"), tag("section", paragraphs(row["bio"]), class_="bio")]
    return _page(request, name, about, tag("h2", f"Posts ({len(posts)})"), [_headline(one) for one in posts])


@SITE.get("/settings")
def settings(request: Request) -> Html:
    row = request.row("SELECT * FROM members WHERE name = ?", request.login)
    return _page(request, "Settings", form("/forum/settings", "Save Settings", area("Biography", "bio", row["bio"])))


@SITE.post("/settings")
def save_settings(request: Request) -> Answer:
    bio = request.text("bio", "Biography", LONGEST_TEXT, optional=True)
    request.write("UPDATE members SET bio = ? WHERE name = ?", bio, request.login)
    return go(f"/forum/user/{request.login}", notice="saved")
