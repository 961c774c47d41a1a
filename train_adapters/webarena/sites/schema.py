"""Tables of the three sites. Dates are texts; money is in cents; votes are +1 or -1."""

SCHEMA = """
CREATE TABLE categories (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE products (
    id INTEGER PRIMARY KEY, category INTEGER NOT NULL REFERENCES categories, name TEXT NOT NULL UNIQUE,
    sku TEXT NOT NULL UNIQUE, price INTEGER NOT NULL, stock INTEGER NOT NULL, enabled INTEGER NOT NULL,
    featured INTEGER NOT NULL, color TEXT NOT NULL, description TEXT NOT NULL);
CREATE TABLE customers (
    user TEXT PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL, street TEXT NOT NULL, city TEXT NOT NULL,
    phone TEXT NOT NULL, newsletter INTEGER NOT NULL);
CREATE TABLE reviews (
    id INTEGER PRIMARY KEY, product INTEGER NOT NULL REFERENCES products, customer TEXT NOT NULL REFERENCES customers,
    rating INTEGER NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL, approved INTEGER NOT NULL, date TEXT NOT NULL);
CREATE TABLE cart (
    customer TEXT NOT NULL REFERENCES customers, product INTEGER NOT NULL REFERENCES products,
    quantity INTEGER NOT NULL, PRIMARY KEY (customer, product));
CREATE TABLE wishes (
    customer TEXT NOT NULL REFERENCES customers, product INTEGER NOT NULL REFERENCES products,
    PRIMARY KEY (customer, product));
CREATE TABLE orders (
    id INTEGER PRIMARY KEY, customer TEXT NOT NULL REFERENCES customers, status TEXT NOT NULL, shipping TEXT NOT NULL,
    payment TEXT NOT NULL, street TEXT NOT NULL, city TEXT NOT NULL, total INTEGER NOT NULL, date TEXT NOT NULL);
CREATE TABLE order_lines (
    order_id INTEGER NOT NULL REFERENCES orders, product INTEGER NOT NULL REFERENCES products,
    quantity INTEGER NOT NULL, price INTEGER NOT NULL, PRIMARY KEY (order_id, product));

CREATE TABLE members (name TEXT PRIMARY KEY, bio TEXT NOT NULL, joined TEXT NOT NULL);
CREATE TABLE boards (name TEXT PRIMARY KEY, title TEXT NOT NULL, about TEXT NOT NULL);
CREATE TABLE subscriptions (
    member TEXT NOT NULL REFERENCES members, board TEXT NOT NULL REFERENCES boards, PRIMARY KEY (member, board));
CREATE TABLE posts (
    id INTEGER PRIMARY KEY, board TEXT NOT NULL REFERENCES boards, author TEXT NOT NULL REFERENCES members,
    title TEXT NOT NULL, text TEXT NOT NULL, date TEXT NOT NULL, base_score INTEGER NOT NULL);
CREATE TABLE votes (
    member TEXT NOT NULL REFERENCES members, post INTEGER NOT NULL REFERENCES posts ON DELETE CASCADE,
    value INTEGER NOT NULL, PRIMARY KEY (member, post));
CREATE TABLE comments (
    id INTEGER PRIMARY KEY, post INTEGER NOT NULL REFERENCES posts ON DELETE CASCADE,
    author TEXT NOT NULL REFERENCES members, text TEXT NOT NULL, date TEXT NOT NULL);

CREATE TABLE developers (user TEXT PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE projects (slug TEXT PRIMARY KEY, name TEXT NOT NULL, about TEXT NOT NULL);
CREATE TABLE milestones (
    id INTEGER PRIMARY KEY, project TEXT NOT NULL REFERENCES projects, title TEXT NOT NULL, due TEXT NOT NULL);
CREATE TABLE labels (id INTEGER PRIMARY KEY, project TEXT NOT NULL REFERENCES projects, name TEXT NOT NULL);
CREATE TABLE issues (
    id INTEGER PRIMARY KEY, project TEXT NOT NULL REFERENCES projects, title TEXT NOT NULL, text TEXT NOT NULL,
    status TEXT NOT NULL, author TEXT NOT NULL REFERENCES developers, assignee TEXT REFERENCES developers,
    milestone INTEGER REFERENCES milestones, date TEXT NOT NULL);
CREATE TABLE issue_labels (
    issue INTEGER NOT NULL REFERENCES issues, label INTEGER NOT NULL REFERENCES labels, PRIMARY KEY (issue, label));
CREATE TABLE notes (
    id INTEGER PRIMARY KEY, issue INTEGER NOT NULL REFERENCES issues, author TEXT NOT NULL REFERENCES developers,
    text TEXT NOT NULL, date TEXT NOT NULL);
"""
