"""Names for the nodes of made-up networks: no two alike, none with a comma or a bracket, nobody in particular."""

from __future__ import annotations

from random import Random


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


FIRST = _words("""
    Ada Alan Amira Ana Anders Astrid Bao Beatriz Carl Chiara Chidi Clara Dario David Dora Edith Elena Emil Erik Esra
    Farid Fatima Felix Grace Greta Hana Hugo Ida Igor Ines Ivan Jana Jonas Julia Kai Karin Kofi Lars Leila Lena Liam
    Lucia Luis Magda Mara Marco Maya Milan Mina Nadia Nils Nora Olga Omar Oscar Paula Petra Pia Rafael Rania Rosa Ruth
    Samir Sara Selma Simon Sofia Stella Sven Tara Theo Tomas Uma Vera Viktor Wanda Yara Yusuf Zoe
""")
LAST = _words("""
    Abbott Acosta Adler Bauer Becker Bianchi Brandt Carver Castillo Chen Conti Costa Dalton Delgado Dietrich Dubois
    Ellis Engel Farrow Ferrari Fischer Fontaine Garner Gomez Graves Gruber Haas Hale Hansen Hartley Herrera Holt Ito
    Jansen Jensen Kato Keller Khan Kimura Klein Koch Larsen Leclerc Lindt Lopez Mancini Marsh Mendez Meyer Moreau
    Morris Nakano Nielsen Novak Okafor Olsen Ortiz Park Pereira Petrov Quinn Ramos Reyes Richter Rossi Sato Schmid
    Silva Singh Sorensen Tanaka Thorne Vargas Vogel Wagner Walsh Weber Winter Yamada Zimmer
""")
KIND = _words("""
    Lake Mount River Port Cape Fort Castle Abbey Valley Forest Bridge Temple Island Bay Tower Palace Museum College
    Market Harbour
""")
PLACE = _words("""
    Alder Arden Belmar Brava Calden Corvo Dorran Elmira Falken Garda Halven Istria Jura Kestrel Lorne Marano Norden
    Orlan Pella Quarra Ravena Sorrel Tavira Ulmen Varna Westra Xanten Ystad Zadar Brisco Cintra Derwen Evora Fjell
""")
RELATIONS = _words("country capital locatedIn isPartOf twinCity nearestTo namedAfter routeEnd border influencedBy")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def people(random: Random, count: int) -> tuple[str, ...]:
    """Different persons: `Ada Abbott`."""
    return _joined(random, FIRST, LAST, count)


def entities(random: Random, count: int) -> tuple[str, ...]:
    """Different places: `Lake Alder`."""
    return _joined(random, KIND, PLACE, count)


def airports(random: Random, count: int) -> tuple[str, ...]:
    """Different three-letter codes: `QXD`."""
    codes = random.sample(range(26**3), count)
    return tuple([LETTERS[code % 26] + LETTERS[code // 26 % 26] + LETTERS[code // 676] for code in codes])


def _joined(random: Random, first: tuple[str, ...], second: tuple[str, ...], count: int) -> tuple[str, ...]:
    chosen = random.sample(range(len(first) * len(second)), count)
    return tuple([f"{first[i % len(first)]} {second[i // len(first)]}" for i in chosen])
