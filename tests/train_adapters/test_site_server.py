"""The local sites under attack: by texts, addresses, forms and crowds."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote, urlencode, urljoin, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from web_client import WebClient
from web_oracles import Step

from train_adapters.webarena.sites.addresses import addresses
from train_adapters.webarena.sites.dom import read, select
from train_adapters.webarena.sites.markup import join, tag
from train_adapters.webarena.sites.server import LARGEST_BODY, SITES, SiteServer
from train_adapters.webarena.sites.site_set import SiteSet
from train_adapters.webarena.sites.users import TASK_USER, USERS, cookie_value, user_of

TOKEN = "secret-of-the-tests"
NASTY = "<script>alert(1)</script><img src=x onerror=alert(2)>\"' onfocus=x & ]]> </textarea></form>"


@pytest.fixture(scope="module")
def server() -> Iterator[SiteServer]:
    running = SiteServer(0, TOKEN)
    thread = threading.Thread(target=running.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield running
    running.shutdown()
    running.server_close()


@pytest.fixture
def sites(server: SiteServer) -> SiteSet:
    """The user's end of the running server, pristine."""
    found = SiteSet(TOKEN)
    found.url = server.url
    found.reset()
    return found


def client_of(sites: SiteSet) -> WebClient:
    return WebClient(sites.storage_state())


def raw(sites: SiteSet, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, str, dict[str, str]]:
    """A request as it is, without a session unless one is given."""
    connection = http.client.HTTPConnection(urlsplit(sites.url).netloc, timeout=10)
    try:
        connection.request(method, path, body or None, {name.replace("_", "-"): text for name, text in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), dict(answer.getheaders())
    finally:
        connection.close()


TEXT_FORMS = [
    ("/forum/post/3", [("Comment", "Type")], "Add Comment"),
    ("/forum/submit", [("Title", "Type"), ("Text", "Type")], "Create Post"),
    ("/forum/settings", [("Biography", "Type")], "Save Settings"),
    ("/shop/product/1", [("Title", "Type"), ("Review", "Type")], "Submit Review"),
    ("/shop/account", [("Street", "Type"), ("City", "Type"), ("Phone", "Type")], "Save Account"),
    ("/tracker/issue/3", [("Comment", "Type")], "Add Comment"),
    ("/tracker/project/handbook/new", [("Title", "Type"), ("Description", "Type")], "Create Issue"),
    ("/tracker/issue/3/edit", [("Title", "Type")], "Save Issue"),
    ("/forum/", [("Search posts", "Type")], "Search"),
    ("/shop/", [("Search products", "Type")], "Search"),
    ("/tracker/", [("Search issues", "Type")], "Search"),
    ("/admin/products", [("Search products", "Type")], "Search"),
]


@pytest.mark.parametrize(("path", "fields", "button"), TEXT_FORMS)
def test_texts_stay_texts(sites: SiteSet, path: str, fields: list[tuple[str, str]], button: str) -> None:
    """What a model writes must not become part of the page: the next agent's browser would run it."""
    client = client_of(sites)
    client.open(sites.url + path)
    for label, action in fields:
        client.do(Step(action, label, NASTY))
    client.do(Step("Click", button))
    assert client.status == 200
    watched = ["/shop/", "/shop/account", "/shop/product/1", "/shop/checkout", "/admin/reviews", "/admin/customer/emma"]
    watched += ["/forum/board/astronomy", "/forum/user/emma_w", "/forum/settings", "/tracker/project/handbook"]
    for page in (client.page, *(read(sites.page(sites.url + one)) for one in watched)):
        assert not select(page, "script, img, [onfocus], [onerror]")
    kept = [str(value) for change in sites.state()["changes"] for value in change["after"].values()]
    assert button == "Search" or NASTY in kept


@given(st.text())
def test_markup_gives_back_the_text(text: str) -> None:
    """Escaping must neither lose a character nor let one through, in a text or in an attribute."""
    clean = text.replace("\0", "").replace("\r", "")
    page = read(tag("main", tag("p", clean), tag("input", value=clean)))
    found = select(page, "main > p")[0]
    assert "".join(one for one in found.children if isinstance(one, str)) == clean
    assert select(page, "main > input")[0].value == clean
    assert join([clean, None, [3, tag("br")]]) == f"{join(clean)}3<br>"


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=300))
def test_forms_keep_any_text(server: SiteServer, text: str) -> None:
    """Texts in any script, with any control character, must be stored or refused, and never break the page."""
    sites = SiteSet(TOKEN)
    sites.url = server.url
    client = client_of(sites)
    client.open(f"{sites.url}/forum/settings")
    client.do(Step("Type", "Biography", text))
    client.do(Step("Click", "Save Settings"))
    assert client.status == 200
    once = sites.state()["digest"]
    client.open(f"{sites.url}/forum/settings")
    client.do(Step("Click", "Save Settings"))
    assert sites.state()["digest"] == once  # what was stored is stored again as it is


@pytest.mark.parametrize(
    "path",
    [
        *("/shop/product/0", "/shop/product/9999", "/shop/product/999999999", "/shop/product/9999999999999999999999"),
        *("/shop/product/-1", "/shop/product/1.5", "/shop/product/abc", "/shop/product/%31", "/shop/product/١"),
        *("/shop/product/1/", "/shop/order/1002", "/shop/order/4711", "/admin/order/1", "/admin/customer/nobody"),
        *("/forum/post/777", "/forum/user/nobody", "/forum/board/nowhere", "/tracker/issue/0", "/tracker/project/x"),
        *("/../../etc/passwd", "/shop/../../../etc/passwd", "/shop/%2e%2e/%2e%2e/etc/passwd", "/shop//etc/passwd"),
        *("/static/../server.py", "/shop/..%5c..", "/nowhere", "/SHOP/", "/shop", "/__state", "/favicon.ico"),
    ],
)
def test_pages_that_do_not_exist(sites: SiteSet, path: str) -> None:
    """A wrong number must give a page that says so; no address may lead to a file."""
    cookies = "; ".join(f"{one['name']}={one['value']}" for one in sites.storage_state()["cookies"])
    status, body, _ = raw(sites, "GET", quote(path, safe="/%."), Cookie=cookies)
    assert status == (200 if path == "/shop" else 404)
    assert "root:" not in body
    assert "Traceback" not in body


@pytest.mark.parametrize("path", ["/__state__", "/__reset__", "/__anything__"])
@pytest.mark.parametrize(
    "given_token", ["", "Bearer ", "Bearer wrong", f"Bearer {TOKEN}x", TOKEN, f"Basic {TOKEN}", "Bearer ÿ"]
)
def test_control_needs_the_token(sites: SiteSet, path: str, given_token: str) -> None:
    """An agent that could reset the sites or read the state would not have to solve anything."""
    for method in ("GET", "POST"):
        headers = {"Authorization": given_token} if given_token else {}
        status, _, _ = raw(sites, method, f"{path}?token={TOKEN}&Authorization=Bearer+{TOKEN}", b"a=1", **headers)
        assert status == 404


def test_methods_must_fit(sites: SiteSet) -> None:
    """A link that changed something would make looking around dangerous."""
    right = {"Authorization": f"Bearer {TOKEN}"}
    assert raw(sites, "GET", "/__reset__", **right)[0] == 404
    assert raw(sites, "POST", "/__state__", b"a=1", **right)[0] == 404
    assert raw(sites, "GET", "/forum/post/3/upvote")[0] == 405
    assert raw(sites, "POST", "/forum/post/3", b"a=1")[0] == 405
    assert raw(sites, "DELETE", "/forum/post/3")[0] == 501
    status, body, headers = raw(sites, "HEAD", "/shop/")
    assert (status, body) == (200, "")
    assert int(headers["Content-Length"]) > 1000


def test_looking_around_changes_nothing(sites: SiteSet) -> None:
    """Every page that links lead to must load, and none may change the state: an agent may look at all of them."""
    cookies = "; ".join(f"{one['name']}={one['value']}" for one in sites.storage_state()["cookies"])
    before, waiting, seen = sites.state()["digest"], [f"{sites.url}/"], set[str]()
    while waiting:
        url = waiting.pop()
        target = urlsplit(url)
        status, body, headers = raw(sites, "GET", f"{target.path}?{target.query}", Cookie=cookies)
        assert status == 200, url
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        page = read(body)
        for label in select(page, "label"):
            assert len(select(page, f'[id="{label.attributes["for"]}"]')) == 1, url
        found = {urljoin(url, one.attributes["href"]) for one in select(page, "a")}
        waiting += sorted(found - seen)
        seen |= found
    assert len(seen) > 250
    assert all(one.startswith(sites.url) for one in seen)
    assert sites.state()["digest"] == before


@pytest.mark.parametrize(
    ("path", "form", "status"),
    [
        ("/forum/post/3/comment", {"text": "x" * 100_000}, 400),
        ("/forum/post/3/comment", {"text": "x" * 20_000}, 303),
        ("/forum/post/3/comment", {"text": " \n "}, 400),
        ("/forum/post/3/comment", {}, 400),
        ("/forum/post/999/comment", {"text": "a"}, 404),
        ("/forum/submit", {"board": "nowhere", "title": "a", "text": "b"}, 400),
        ("/forum/submit", {"board": "books", "title": "a" * 201, "text": "b"}, 400),
        ("/forum/post/3/delete", {}, 403),
        ("/forum/comment/999/delete", {}, 404),
        ("/shop/cart/add/1", {"quantity": "0"}, 400),
        ("/shop/cart/add/1", {"quantity": "-3"}, 400),
        ("/shop/cart/add/1", {"quantity": "1e3"}, 400),
        ("/shop/cart/add/1", {"quantity": "٣"}, 400),
        ("/shop/cart/add/1", {"quantity": "9" * 50}, 400),
        ("/shop/cart/add/999", {"quantity": "1"}, 404),
        ("/shop/checkout", {"street": "a", "city": "b", "shipping": "express", "payment": "card"}, 400),
        ("/shop/order/1002/cancel", {}, 404),
        ("/shop/order/1031/cancel", {}, 400),
        ("/shop/product/1/review", {"rating": "6", "title": "a", "text": "b"}, 400),
        ("/admin/product/3", {"price": "free", "stock": "1"}, 400),
        ("/admin/product/3", {"price": "1", "stock": "-1"}, 400),
        ("/admin/product/999", {"price": "1", "stock": "1"}, 404),
        ("/admin/order/1001", {"status": "lost"}, 400),
        ("/tracker/project/handbook/new", {"title": "a", "label": "1"}, 400),
        ("/tracker/project/handbook/new", {"title": "a", "assignee": "nobody"}, 400),
        ("/tracker/project/handbook/new", {"title": "a", "milestone": "1"}, 400),
        ("/tracker/issue/999/turn", {}, 404),
        ("/shop/login", {"user": "emma", "password": "wrong"}, 403),
        ("/shop/login", {"user": "nobody", "password": ""}, 403),
        ("/shop/login", {}, 403),
        ("/forum/submit", {f"field{number}": "1" for number in range(200)}, 400),
    ],
)
def test_bad_forms_are_refused_and_change_nothing(sites: SiteSet, path: str, form: dict[str, str], status: int) -> None:
    """A form that is refused must leave the state as it was, and must not end the server."""
    cookies = "; ".join(f"{one['name']}={one['value']}" for one in sites.storage_state()["cookies"])
    assert raw(sites, "POST", path, urlencode(form).encode() or b"a=1", Cookie=cookies)[0] == status
    assert (sites.state()["changes"] == []) == (status != 303)


def test_bodies_that_are_too_large_or_have_no_length(sites: SiteSet) -> None:
    """A body without end must not fill the memory, nor keep others waiting."""
    assert raw(sites, "POST", "/forum/submit", b"a=" + b"x" * LARGEST_BODY)[0] == 413
    for head in (
        "Content-Length: -5",
        "Content-Length: abc",
        "Transfer-Encoding: chunked",
        "Content-Length: " + "9" * 40,
    ):
        with socket.create_connection(("127.0.0.1", urlsplit(sites.url).port or 0), timeout=5) as plain:
            plain.sendall(f"POST /forum/submit HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n".encode())
            assert plain.recv(100).split()[1] in (b"411", b"413")
    assert sites.healthy()


def test_addresses_that_are_none(sites: SiteSet) -> None:
    """A request line that nobody can read must be refused, and the next one served."""
    for line in ("GET http://[x/ HTTP/1.1", "GET", "GET / HTTP/9.9", "\x00\xff", "POST /%zz HTTP/1.1"):
        with socket.create_connection(("127.0.0.1", urlsplit(sites.url).port or 0), timeout=5) as plain:
            plain.sendall(f"{line}\r\nHost: x\r\n\r\n".encode("latin-1"))
            plain.shutdown(socket.SHUT_WR)
            assert b"200 OK" not in plain.recv(2_000)
    assert sites.healthy()


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_as_a_form(server: SiteServer, body: bytes) -> None:
    """Bytes that are no form must be answered like any wrong form."""
    sites = SiteSet(TOKEN)
    sites.url = server.url
    cookies = f"forum_session={cookie_value(TOKEN, 'forum', 'emma_w')}"
    assert raw(sites, "POST", "/forum/submit", b"board=books&" + body, Cookie=cookies)[0] in (303, 400)


@pytest.mark.parametrize("path", ["/shop/search?q=", "/forum/search?q=", "/tracker/search?q=", "/admin/search?q="])
@pytest.mark.parametrize(
    "text",
    ["x" * 60_000, "%_\\" * 3_000, "%00%ff%fe", "'; DROP TABLE posts; --", "&q=2&q"],
    ids=["long", "wild", "bytes", "sql", "twice"],
)
def test_searches_for_anything(sites: SiteSet, path: str, text: str) -> None:
    """Whatever a model searches for, it must get a page, and nothing but a search."""
    cookies = "; ".join(f"{one['name']}={one['value']}" for one in sites.storage_state()["cookies"])
    assert raw(sites, "GET", path + quote(text, safe="%&="), Cookie=cookies)[0] == 200
    assert raw(sites, "GET", f"{path}desk&page={'9' * 5_000}", Cookie=cookies)[0] == 200
    assert sites.state()["changes"] == []


@pytest.mark.parametrize(("text", "found"), [("%", 0), ("_", 0), ("desk", 3), ("DESK", 3), ("", 48)])
def test_searches_find_what_is_written(sites: SiteSet, text: str, found: int) -> None:
    """Characters that mean something to the database must be searched for like others."""
    page = read(sites.page(f"{sites.urls['__SHOP__']}/search?q={quote(text)}"))
    assert select(page, ".count")[0].text.startswith(f"{found} items")


def test_only_users_see_what_is_theirs(sites: SiteSet) -> None:
    """Without a login a page of a user leads to the login, and from there back; the manager's pages all do."""
    assert all(user in USERS[site] for site, user in TASK_USER.items())
    for path in ("/shop/cart", "/shop/orders", "/admin/", "/admin/product/1", "/forum/settings", "/tracker/mine"):
        status, _, headers = raw(sites, "GET", path)
        site = path.split("/")[1]
        assert (status, headers["Location"].split("?")[0]) == (303, f"/{site}/login")
        client = WebClient()
        client.open(sites.url + path)
        client.do(Step("Type", "User name", TASK_USER[site]))
        client.do(Step("Type", "Password", USERS[site][TASK_USER[site]]))
        client.do(Step("Press Enter"))
        assert client.url.split("?")[0] == sites.url + path
        assert client.status == 200
        assert f"Logged in as {TASK_USER[site]}" in client.page.text
        client.do(Step("Click", "Log out"))
        assert "Logged in" not in client.page.text
    assert raw(sites, "POST", "/forum/post/3/upvote", b"a=1")[0] == 303
    assert sites.state()["changes"] == []


@pytest.mark.parametrize(
    "target",
    ["http://evil.example/", "//evil.example/", "/forum/\\evil", "/forum/x\r\nSet-Cookie: a=b", "javascript:1"],
)
def test_login_leads_nowhere_else(sites: SiteSet, target: str) -> None:
    """A crafted address must not send the agent's browser away from the sites, nor put headers into the answer."""
    form = urlencode({"user": "emma_w", "password": "emma-forum", "next": target}).encode()
    status, _, headers = raw(sites, "POST", "/forum/login", form)
    assert status == 303
    assert urljoin(sites.url, headers["Location"]).startswith(f"{sites.url}/forum/")
    assert "a=b" not in headers["Set-Cookie"]


@pytest.mark.parametrize("cookie", ["", "emma", "emma.", "manager.0", 'emma."', "x" * 5000, "é.é", "; ;=;"])
def test_forged_sessions_are_nobodys(sites: SiteSet, cookie: str) -> None:
    """A user must not be whoever the cookie names."""
    text = cookie.encode().decode("latin-1")
    assert raw(sites, "GET", "/admin/", Cookie=f"admin_session={text}")[0] == 303
    for site in SITES:
        assert user_of(TOKEN, site, cookie) is None
    assert user_of(TOKEN, "forum", cookie_value(TOKEN, "tracker", "emma")) is None
    assert user_of("other", "tracker", cookie_value(TOKEN, "tracker", "emma")) is None


def test_many_at_once(sites: SiteSet) -> None:
    """Episodes side by side must lose no form and see no half of another's."""

    def comment(number: int) -> int:
        client = client_of(sites)
        client.open(f"{sites.url}/forum/post/3")
        client.do(Step("Type", "Comment", f"comment {number}"))
        client.do(Step("Click", "Add Comment"))
        return client.status

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(comment, range(40))) == {200}
    texts = sorted(change["after"]["text"] for change in sites.state()["changes"])
    assert texts == sorted(f"comment {number}" for number in range(40))


def test_reset_under_load(sites: SiteSet) -> None:
    """A reset between forms of others must bring everything back, with no form half done and none refused."""
    pristine, stop = sites.state()["digest"], threading.Event()

    def order() -> int:
        count, client = 0, client_of(sites)
        while not stop.is_set():
            client.open(f"{sites.url}/shop/cart/add/3", "quantity=1")
            client.open(f"{sites.url}/shop/checkout", "street=a&city=b&shipping=express&payment=card")
            assert client.status in (200, 400, 404)  # the cart, or the new order's page, may be gone by then
            count += 1
        return count

    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(order) for _ in range(4)]
        for _ in range(30):
            sites.reset()
            changes = sites.state()["changes"]
            orders = {change["after"]["id"] for change in changes if change["table"] == "orders"}
            lines = {change["after"]["order_id"] for change in changes if change["table"] == "order_lines"}
            assert orders == lines
        stop.set()
        assert sum(job.result() for job in jobs) > 0
    sites.reset()
    assert sites.state() == {"digest": pristine, "changes": []}


def test_site_sets_of_one_process_are_apart(sites: SiteSet) -> None:
    """Two workers in one process must not see each other's changes, nor be logged in at the other's."""
    other = SiteServer(0, "other-secret")
    thread = threading.Thread(target=other.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        second = SiteSet("other-secret")
        second.url = other.url
        client = client_of(second)
        client.open(f"{second.url}/forum/board/books/join", "")
        assert [change["table"] for change in second.state()["changes"]] == ["subscriptions"]
        assert sites.state()["changes"] == []
        stranger = WebClient(second.storage_state())
        stranger.open(f"{sites.url}/admin/")
        assert stranger.url.startswith(f"{sites.url}/admin/login")
        assert sites.state()["digest"] != second.state()["digest"]
        second.reset()
        assert sites.state()["digest"] == second.state()["digest"]
    finally:
        other.shutdown()
        other.server_close()


def test_sites_are_on_the_loopback_device_only(server: SiteServer) -> None:
    """Sites without secrets must not be offered to the network."""
    assert server.server_address[0] == "127.0.0.1"
    assert all(url.startswith("http://127.0.0.1:") for url in addresses(server.url).values())
