"""The forum's members, boards and posts."""

from __future__ import annotations

MEMBERS = {
    "emma_w": "New here.",
    "cycling_tom": "Two wheels and a thermos of coffee.",
    "bakerlena": "Sourdough since 2014.",
    "pixel_ravi": "I draw small things on small screens.",
    "stargazer_io": "Looking up most nights.",
    "greenthumb_al": "Tomatoes, beans and patience.",
    "quietreader": "One book a week.",
    "hillwalker_mo": "Slow but steady.",
    "synth_kaja": "Collects old drum machines.",
    "chess_pablo": "Rated lower than I feel.",
}
"""Biography by name."""

BOARDS = {
    "cooking": (
        "Cooking",
        "Recipes, tools and questions from the kitchen.",
        (
            ("My bread does not rise in winter", "The kitchen has 17 degrees. Should I use more yeast?"),
            ("Best pan for pancakes", "Looking for something that does not stick and lasts."),
            ("How do you store fresh herbs", "Mine are limp after two days in the fridge."),
            ("Lentil soup for a crowd", "Cooking for thirty people next month, tips welcome."),
            ("A simple tomato sauce", "Three ingredients, forty minutes, no sugar."),
            ("Is a rice cooker worth it", "We eat rice twice a week at most."),
            ("Sharpening knives at home", "Whetstone or pull-through sharpener?"),
        ),
    ),
    "cycling": (
        "Cycling",
        "Bikes, routes and repairs.",
        (
            ("Chain slips under load", "New cassette, old chain. Do I have to replace both?"),
            ("Weekend route along the canal", "Flat, quiet and with two good cafes."),
            ("Winter gloves that work", "My fingers freeze below five degrees."),
            ("Commuting with a trailer", "Does anybody take two children to school like this?"),
            ("First ride over 100 km", "Done it, and I could still walk the day after."),
            ("Which lights for dark lanes", "The road has no lamps at all."),
            ("Squeaky disc brakes", "Cleaned twice, still as loud as a train."),
        ),
    ),
    "books": (
        "Books",
        "What we read and what we thought of it.",
        (
            ("Novels set on islands", "I need three more for my list."),
            ("Reading in two languages", "How do you keep the pace in the second one?"),
            ("The longest book you finished", "Mine has 1,300 pages and took a year."),
            ("Audiobooks while cooking", "Does it count as reading?"),
            ("My ten favourite short stories", "In no order, all under twenty pages."),
            ("Lending books and losing them", "Do you keep a list?"),
            ("Looking for a book about lighthouses", "Fiction or not, with pictures if possible."),
        ),
    ),
    "gardening": (
        "Gardening",
        "From balcony boxes to orchards.",
        (
            ("Slugs are eating my lettuce", "Beer traps do not help at all."),
            ("When to plant garlic", "Autumn or early spring?"),
            ("Compost smells bad", "I think there is too much grass in it."),
            ("Tomatoes on a north balcony", "Any variety that copes with little sun?"),
            ("My first greenhouse", "Built from old windows, pictures below."),
            ("Pruning an old apple tree", "Nobody has touched it for ten years."),
            ("Rain barrel with a tap", "Which size is enough for twenty square metres?"),
        ),
    ),
    "astronomy": (
        "Astronomy",
        "Stars, planets and telescopes.",
        (
            ("First telescope under 300", "For a balcony in a bright city."),
            ("Saturn was stunning last night", "Rings at 120x, perfectly still air."),
            ("How to find Andromeda", "I always end up at the wrong star."),
            ("Binoculars or telescope", "For a ten year old child."),
            ("My sketch of the Moon", "Pencil, two hours, frozen toes."),
            ("Red light for the tent", "So that I can read maps at night."),
            ("Cloud forecast that is right", "Three apps, three opinions."),
        ),
    ),
    "boardgames": (
        "Board Games",
        "Dice, cards and long evenings.",
        (
            ("Games for exactly two", "Thirty minutes, easy to explain."),
            ("Sleeves for all cards", "Do you protect every deck?"),
            ("Rules question about trading", "May I trade during the turn of somebody else?"),
            ("Favourite game of the year", "One each, please, with a reason."),
            ("Built a table for our group", "Oak, with a sunken middle."),
            ("Chess clocks for slow players", "Is it rude to bring one?"),
            ("Cooperative games that are hard", "We win too often."),
        ),
    ),
}
"""By name: title, description, and the posts' titles and texts."""

COMMENTS = (
    "Same here, following this.",
    "Thank you, that helped me a lot.",
    "I would not do that, to be honest.",
    "Could you post a picture?",
    "Works for me since last year.",
    "Ask in the shop around the corner.",
    "Patience is the answer.",
    "I tried it and gave up.",
)
