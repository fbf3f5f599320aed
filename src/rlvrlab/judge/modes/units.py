r"""Units, and things that are counted: one table for everybody who reads them.

unit_named("feet") = unit_named("ft") = "ft"      may_mean("pounds") = {"pound", "lb", "sterling"}
is_unit("apples") = is_unit("km") = True          is_unit("twelfths") = is_unit("never") = is_unit("grand") = False

What is counted may be left out or have another name (`5 apples`, `5 pieces`); a unit may be left out where the other
text names none, but is never another unit. All other words behind a number may make another value of it.
"""

from __future__ import annotations

_UNITS = """
nm nanometer nanometre, um micrometer micrometre micron, mm millimeter millimetre, cm centimeter centimetre,
dm decimeter decimetre, m meter metre, km kilometer kilometre, inch inches, ft foot feet, yd yard, mi mile,
acre, hectare ha, ml milliliter millilitre cc, cl centiliter centilitre, dl deciliter decilitre, l liter litre,
gal gallon, qt quart, pt pint, cup, tbsp tablespoon, tsp teaspoon, bushel,
mg milligram, g gram, kg kilogram, lb lbs, pound, oz ounce, ton tonne, mol mole, mmol millimole,
ms millisecond, second sec, minute min, hour hr, day, week, month, year yr, decade, century centuries,
rpm, hz hertz, khz kilohertz, mhz megahertz, ghz gigahertz,
newton, kn kilonewton, dyn dyne, pa pascal, kpa kilopascal, mpa megapascal, atm atmosphere, bar, mbar millibar, torr,
joule, kj kilojoule, mj, megajoule, millijoule, wh, kwh, mwh, cal, kcal kilocalorie, calorie, erg, ev, kev, mev, gev,
w watt, kw kilowatt, mw, megawatt, milliwatt, gw gigawatt,
volt, kv kilovolt, mv, megavolt, millivolt, ampere amp, ma milliampere milliamp, ohm, coulomb, farad, henry, tesla,
lux, db decibel, bit, byte, kb kilobyte, mb megabyte, gb gigabyte,
celsius, fahrenheit, kelvin, degree deg, radian rad, arcminute, arcsecond, percent,
cent, pence, penny pennies, dollar usd, euro eur, sterling gbp, yen jpy, yuan cny, rupee inr, peso, franc, ruble,
krona kronor, won,
am, pm, monday, tuesday, wednesday, thursday, friday, saturday, sunday,
january, february, march, april, may, june, july, august, september, october, november, december
"""
UNITS = {name: names.split()[0] for names in _UNITS.split(",") for name in names.split()}
"""Each way to write a unit, as one of them and in small letters, with the name by which it is compared."""
LETTERS = {
    "m": "m", "g": "g", "s": "second", "l": "l", "L": "l", "h": "hour", "N": "newton", "J": "joule", "W": "w",
    "V": "volt", "A": "ampere", "C": "C", "K": "kelvin", "T": "tesla", "H": "henry", "F": "F",
}  # fmt: skip
"""Units of one letter; every other letter is a variable, i and e in roman type too."""
ALSO = {
    "pound": ("lb", "sterling"), "penny": ("cent", "pence"), "calorie": ("cal", "kcal"), "C": ("celsius", "coulomb"),
    "F": ("fahrenheit", "farad"), "degree": ("celsius", "fahrenheit", "C", "F"), "arcminute": ("minute", "ft"),
    "arcsecond": ("second", "inch"), "mw": ("megawatt", "milliwatt"), "mj": ("megajoule", "millijoule"),
    "mv": ("megavolt", "millivolt"),
}  # fmt: skip
"""What a unit with several meanings may stand for where the other text says which."""
SURE_PAIRS = {
    "mm", "cm", "dm", "km", "ft", "yd", "mi", "mg", "kg", "lb", "oz", "ml", "ms", "hr", "yr", "am", "pm",
}  # fmt: skip
"""Two letters that are a unit wherever they stand; any others may be variables beside each other."""
SIGNS_OF_MONEY = {
    "\\$": ("dollar", "peso"), "$": ("dollar", "peso"), "€": ("euro",), "£": ("sterling",), "¥": ("yen", "yuan"),
}  # fmt: skip
"""What each may stand for; by itself it is the first."""
CENTS = {"cent", "pence", "penny"}
"""Hundredths, as percent are: a number that stands alone is of none."""
RATES = {"mph": ("mi", "hour"), "kph": ("km", "hour"), "kmh": ("km", "hour"), "kmph": ("km", "hour")}
_IRREGULAR = """
people person men man women woman children child fish sheep deer geese mice teeth leaves leaf loaves loaf shelves shelf
knives knife lives bars in
"""
IRREGULAR = frozenset(_IRREGULAR.split())
_COUNTED = """
nickel dime coin bill note ticket stamp token book page chapter word letter line song game movie episode photo picture
painting poster magazine newspaper file app email text folder problem question lesson test worksheet paper sheet
notebook card sticker crayon pencil pen marker eraser ruler envelope student kid boy girl friend guest visitor
customer passenger player member employee teacher adult pupil camper worker tenant family team class classroom vote
group sibling brother sister apple orange banana pear peach plum cherry strawberry lemon lime berry watermelon pumpkin
grape fruit vegetable carrot potato tomato onion turnip egg cookie cake cupcake pie pizza slice sandwich hamburger
hotdog muffin donut doughnut pastry brownie cracker biscuit pancake candy sweet chocolate lollipop jellybean gumball
marshmallow peanut walnut acorn nut bean meal serving scoop drink soda bottle can glass jar pitcher carton chip noodle
meatball piece box bag pack packet package case crate basket bucket bin container sack load pile batch bale bouquet
bunch tray plate dish spoon fork bowl pill bird chicken duck dog cat puppy kitten cow horse goat pig rabbit turtle
frog snake lion bee ant flea butterfly fly ladybug insect animal pet feather leg eye tail bone wing tree flower rose
plant seed petal orchid daisy stick plank branch bush marble ball balloon toy doll block bead brick tile stone rock
gem star candle bracelet necklace ring button pin nail car truck van bus bike bicycle train boat ship wheel tire seat
ride trip lap step skip floor room house home window door wall table chair desk bench drum machine light phone
computer shirt sock shoe coat hat dress towel blanket glove outfit goal round match row column set item gift present
prize shell seashell way solution term digit value integer number side edge vertex face diagonal angle triangle circle
rectangle polygon color colour possibility arrangement outcome combination permutation subset element point unit
"""
COUNTED = frozenset(_COUNTED.split())
"""Things that are counted, as one of them; several are recognised by their endings."""


def unit_named(word: str) -> str | None:
    """The one name of a known unit: `feet` and `ft` are `ft`; the case counts in a single letter alone."""
    if len(word) == 1:
        return LETTERS.get(word)
    name = word.lower()
    return None if name in IRREGULAR else UNITS.get(name) or UNITS.get(name.removesuffix("s"))


def may_mean(word: str) -> frozenset[str]:
    """All that a word may stand for as a unit; nothing where it is none."""
    name = unit_named(word)
    return frozenset((name, *ALSO.get(name, ()))) if name else frozenset()


def is_money(sign: str, word: str) -> bool:
    """May a sign and a word beside one number mean the same money? `$5 dollars`, but not `$5 euros` or `$5 kg`."""
    return bool(may_mean(word) & set(SIGNS_OF_MONEY[sign]))


def is_unit(word: str) -> bool:
    """Does the word say of what there are so many, and nothing about how many?"""
    if unit_named(word):
        return True
    word = word.lower()
    if word in COUNTED or word in IRREGULAR or word in RATES:
        return True
    singulars = (word[:-1], word[:-2]) if word.endswith("es") else (word[:-1],) if word.endswith("s") else ()
    return any(one in COUNTED for one in singulars) or (word.endswith("ies") and f"{word[:-3]}y" in COUNTED)
