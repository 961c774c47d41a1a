"""The issue tracker's developers, projects and issues."""

from __future__ import annotations

DEVELOPERS = {
    "emma": "Emma Weber",
    "jonas": "Jonas Keller",
    "mei": "Mei Lin",
    "sofia": "Sofia Rossi",
    "amir": "Amir Karimi",
    "bea": "Bea Novak",
}
"""Name by user."""

LABELS = ("bug", "feature", "documentation", "performance", "good first issue")
MILESTONES = ("1.0", "1.1", "2.0")

PROJECTS = {
    "storefront": (
        "Storefront",
        "The web shop that customers see.",
        (
            ("Cart total is wrong after a coupon", "The coupon is subtracted twice when the page is loaded again."),
            ("Search ignores plural forms", "Searching for lamps does not find lamp."),
            ("Add a dark theme", "Many customers ask for it."),
            ("Checkout button hidden on small screens", "It is below the footer at 320 pixels."),
            ("Product images load slowly", "They are sent in full size to phones."),
            ("Describe the return policy", "There is no page about it."),
            ("Wish list loses items after login", "Items added as a guest disappear."),
            ("Remember the chosen language", "It is English again after each visit."),
            ("Crash on empty category", "A category without products shows an error page."),
            ("Sort products by rating", "Only price and name can be chosen now."),
            ("Email address with plus sign refused", "The form says that the address is not valid."),
        ),
    ),
    "warehouse": (
        "Warehouse",
        "Stock, shelves and parcels.",
        (
            ("Stock goes negative", "Two orders at the same time take the last item."),
            ("Print labels in batches", "One at a time takes too long before Christmas."),
            ("Scanner disconnects after an hour", "It has to be paired again each time."),
            ("Explain the shelf numbers", "New colleagues do not know how to read them."),
            ("Slow list of open parcels", "It takes twelve seconds with 5,000 parcels."),
            ("Count sheets per zone", "The stock take would be much easier."),
            ("Wrong weight on parcel labels", "Grams are printed as kilograms."),
            ("Warn when a shelf is full", "Goods end up on the floor."),
            ("Returned goods are not booked", "They stay in the state in transit for ever."),
            ("Export the stock as CSV", "Accounting asks for it each month."),
            ("Time zone of delivery dates", "Parcels from overseas arrive one day early."),
        ),
    ),
    "mobile-app": (
        "Mobile App",
        "The shop on phones.",
        (
            ("App freezes on start without network", "Only a white screen is shown."),
            ("Push messages arrive twice", "Both for orders and for news."),
            ("Fingerprint login", "Typing the password on a phone is a nuisance."),
            ("Text cut off in large font", "The price is not readable at all."),
            ("Battery drain in background", "Eight per cent a night with the app closed."),
            ("List the supported devices", "Support is asked about it daily."),
            ("Camera permission asked too often", "Each start of the scanner asks again."),
            ("Share a product with friends", "A link that opens the app would be nice."),
            ("Back button leaves the app", "It should go to the page before."),
            ("Smaller download size", "The app needs 180 megabytes."),
            ("Dates shown in American order", "Month and day are swapped in Europe."),
        ),
    ),
    "handbook": (
        "Handbook",
        "How we work, written down.",
        (
            ("Outdated chapter on holidays", "It still tells of the old paper form."),
            ("Add a glossary", "New colleagues ask about the same ten words."),
            ("Broken links in the index", "Seven of them lead nowhere."),
            ("Search is very slow", "Every search reads all the files."),
            ("Write about code reviews", "Who reviews what, and how fast."),
            ("Typo on the front page", "It says handbok."),
            ("Pictures missing on the printed version", "Only frames are printed."),
            ("Describe the on-call rota", "Nobody knows who is next."),
            ("Move the old minutes away", "They fill the list of pages."),
            ("Table of contents per chapter", "Some chapters have forty pages."),
            ("Wrong phone number of the help desk", "The last digit is a 4."),
        ),
    ),
}
"""By slug: name, description, and the issues' titles and texts."""

NOTES = (
    "I can reproduce this.",
    "Could somebody confirm it on the test system?",
    "This will take about two days.",
    "Moved to the next planning round.",
    "See also the discussion of last week.",
    "I have a draft of this.",
)
