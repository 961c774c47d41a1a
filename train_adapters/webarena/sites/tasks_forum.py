"""Tasks of the forum."""

from __future__ import annotations

from train_adapters.webarena.sites.template import (
    Check,
    Seed,
    Template,
    added,
    answer,
    each,
    ends_at,
    removed,
    shows,
    state,
)

_FORUM, _START, _ME = ("forum",), "__FORUM__/", "emma_w"


def _board_name(seed: Seed, board: str) -> str:
    return str(seed.one("SELECT name FROM boards WHERE title = ?", board))


def _board_page(seed: Seed, board: str) -> Check:
    return ends_at(f"__FORUM__/board/{_board_name(seed, board)}")


def _post_page(seed: Seed, post: str) -> Check:
    return ends_at(f"__FORUM__/post/{seed.post(post)}")


def _profile(seed: Seed) -> Check:
    return ends_at(f"__FORUM__/user/{_ME}")


def _score(seed: Seed, post: str) -> Check:
    return answer(seed.one("SELECT base_score FROM posts WHERE title = ?", post))


def _author(seed: Seed, post: str) -> Check:
    return answer(seed.one("SELECT author FROM posts WHERE title = ?", post))


def _top_author(seed: Seed, board: str) -> Check:
    of_board = "FROM posts WHERE board = ?1"
    query = f"SELECT author {of_board} AND base_score = (SELECT max(base_score) {of_board})"
    return answer(seed.one(query, _board_name(seed, board)))


def _voted(seed: Seed, post: str, direction: str) -> Check:
    return state(added("votes", member=_ME, post=seed.post(post), value={"up": 1, "down": -1}[direction]))


def _commented(seed: Seed, post: str, text: str) -> Check:
    return state(added("comments", author=_ME, post=seed.post(post), text=text))


def _posted(seed: Seed, board: str, title: str, text: str) -> Check:
    return state(added("posts", author=_ME, board=_board_name(seed, board), title=title, text=text))


def _subscribed(seed: Seed, board: str) -> Check:
    return state(added("subscriptions", member=_ME, board=_board_name(seed, board)))


def _unsubscribed(seed: Seed, board: str) -> Check:
    return state(removed("subscriptions", member=_ME, board=_board_name(seed, board)))


def _biography(seed: Seed, text: str) -> Check:
    return shows(f"__FORUM__/user/{_ME}", ".bio", text)


TEMPLATES = (
    Template(
        *("forum-open-board", "train", _FORUM, _START, "Open the board {{board}}."),
        each("board", "Cooking", "Astronomy", "Books"),
        *(_board_page, 2),
    ),
    Template(
        *("forum-profile", "val", _FORUM, _START, "Open the page of my profile."),
        [{}],
        *(_profile, 2),
    ),
    Template(
        *("forum-open-post", "train", _FORUM, _START, "Search for the post “{{post}}” and open it."),
        each("post", "Squeaky disc brakes", "When to plant garlic"),
        *(_post_page, 3),
    ),
    Template(
        "forum-score",
        *("train", _FORUM, _START, "Which score does the post “{{post}}” have? Exit with the number only."),
        each("post", "Compost smells bad", "Binoculars or telescope"),
        *(_score, 2),
    ),
    Template(
        "forum-author",
        *("val", _FORUM, _START, "Who wrote the post “{{post}}”? Exit with the name of the member only."),
        each("post", "Games for exactly two", "Rain barrel with a tap"),
        *(_author, 2),
    ),
    Template(
        "forum-top",
        *("test", _FORUM, _START, "Who wrote the post with the highest score in {{board}}? Exit with the name only."),
        each("board", "Cycling", "Board Games"),
        *(_top_author, 4),
    ),
    Template(
        *("forum-vote", "train", _FORUM, _START, "Give the post “{{post}}” an {{direction}}vote."),
        [
            {"post": "Sharpening knives at home", "direction": "up"},
            {"post": "Novels set on islands", "direction": "up"},
        ],
        *(_voted, 4, True),
    ),
    Template(
        *("forum-downvote", "test", _FORUM, _START, "Vote the post “{{post}}” {{direction}}."),
        [
            {"post": "Sleeves for all cards", "direction": "down"},
            {"post": "Slugs are eating my lettuce", "direction": "down"},
        ],
        *(_voted, 4, True),
    ),
    Template(
        *("forum-comment", "train", _FORUM, _START, "Comment on the post “{{post}}” with the text “{{text}}”."),
        [
            {"post": "Is a rice cooker worth it", "text": "Yes, I use mine daily."},
            {"post": "First telescope under 300", "text": "Try a used one."},
        ],
        *(_commented, 5, True),
    ),
    Template(
        *("forum-submit", "test", _FORUM, _START),
        "Create a post in {{board}} with the title “{{title}}” and the text “{{text}}”.",
        [
            {"board": "Gardening", "title": "Seeds to swap", "text": "I have too many beans."},
            {"board": "Cycling", "title": "Lost a bell", "text": "Near the canal on Sunday."},
        ],
        *(_posted, 6, True),
    ),
    Template(
        *("forum-join", "train", _FORUM, _START, "Subscribe me to the board {{board}}."),
        each("board", "Astronomy", "Cycling"),
        *(_subscribed, 3, True),
    ),
    Template(
        *(
            "forum-leave",
            "val",
            _FORUM,
            _START,
            "I do not want to read about {{board}} any more: unsubscribe me there.",
        ),
        each("board", "Gardening", "Cooking"),
        *(_unsubscribed, 3, True),
    ),
    Template(
        *("forum-biography", "test", _FORUM, _START, "Change the biography of my profile to “{{text}}”."),
        each("text", "I bake on Sundays.", "Reads more than she cooks."),
        *(_biography, 4, True),
    ),
)
