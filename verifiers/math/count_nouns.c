/* Words that may stand behind a number and leave it as it is: things that are counted, and units beyond units.c.
 *
 * A closed list, in the order of their bytes: any other word must stand in the task's prompt or reference. Words that
 * change a number are in unit_words.c, which comes first. */
#include <string.h>

#include "server/base/cleanup.h"
#include "verifiers/math/words.h"

/* clang-format off */
static const char *const nouns[] = {
    "acre", "acres", "adult", "adults", "altogether", "am", "an", "animal", "animals", "ant", "ants", "apple", "apples",
    "arrangement", "arrangements", "atom", "atoms", "available", "away", "bag", "bags", "ball", "balls", "banana",
    "bananas", "barrel", "barrels", "basket", "baskets", "bee", "bees", "bike", "bikes", "binary", "bird", "birds",
    "bit", "bits", "black", "block", "blocks", "blue", "board", "boards", "boat", "boats", "book", "books", "bottle",
    "bottles", "bowl", "bowls", "box", "boxes", "boy", "boys", "bracelet", "bracelets", "brick", "bricks", "buck",
    "bucket", "buckets", "bucks", "bus", "buses", "byte", "bytes", "cake", "cakes", "cal", "calorie", "calories",
    "candies", "candle", "candles", "candy", "car", "card", "cards", "cars", "case", "cases", "cat", "cats", "cent",
    "cents", "centuries", "century", "chair", "chairs", "chicken", "chickens", "child", "children", "chocolate",
    "chocolates", "choice", "choices", "circle", "circles", "class", "classes", "coin", "coins", "color", "colors",
    "combination", "combinations", "complex", "consecutive", "container", "containers", "cookie", "cookies", "copies",
    "copy", "correct", "cow", "cows", "crate", "crates", "crayon", "crayons", "cu", "cube", "cubes", "cubic", "cup",
    "cups", "customer", "customers", "cycle", "cycles", "decade", "decades", "deep", "degree", "degrees", "diagonal",
    "diagonals", "different", "digit", "digits", "dime", "dimes", "distinct", "dog", "dogs", "donut", "donuts", "dot",
    "dots", "duck", "ducks", "each", "edge", "edges", "egg", "eggs", "element", "elements", "employee", "employees",
    "envelope", "envelopes", "eraser", "erasers", "even", "evening", "every", "extra", "face", "faces", "factor",
    "factors", "families", "family", "fish", "floor", "floors", "flower", "flowers", "friend", "friends", "fruit",
    "fruits", "full", "function", "functions", "game", "games", "generation", "generations", "girl", "girls", "glass",
    "glasses", "goal", "goals", "grade", "grades", "grape", "grapes", "green", "group", "groups", "guest", "guests",
    "hat", "hats", "hectare", "hectares", "horse", "horses", "house", "houses", "in", "integer", "integers", "item",
    "items", "jar", "jars", "kb", "kcal", "kid", "kids", "kitten", "kittens", "knot", "knots", "lap", "laps", "leaf",
    "leaves", "left", "legs", "lemon", "lemons", "lesson", "lessons", "letter", "letters", "line", "lines", "long",
    "man", "marble", "marbles", "match", "matches", "member", "members", "men", "mice", "morning", "mouse", "move",
    "moves", "muffin", "muffins", "necklace", "necklaces", "needed", "new", "nickel", "nickels", "night", "nights",
    "number", "numbers", "object", "objects", "odd", "of", "old", "orange", "oranges", "order", "ordered", "orders",
    "outcome", "outcomes", "outfit", "outfits", "pack", "package", "packages", "packs", "page", "pages", "pair",
    "pancake", "pancakes", "panel", "panels", "passenger", "passengers", "path", "paths", "pct", "peach", "peaches",
    "pear", "pears", "pen", "pence", "pencil", "pencils", "penguin", "pennies", "penny", "pens", "people", "per",
    "percent", "percents", "permutation", "permutations", "person", "peso", "pesos", "phone", "phones", "picture",
    "pictures", "piece", "pieces", "pig", "pigs", "pint", "pints", "pizza", "pizzas", "plane", "planes", "plant",
    "plants", "plate", "plates", "player", "players", "pm", "point", "points", "positive", "possibilities",
    "possibility", "possible", "potato", "potatoes", "present", "presents", "prime", "problem", "problems", "product",
    "products", "pt", "puppies", "puppy", "qt", "quart", "quarts", "question", "questions", "rabbit", "rabbits", "real",
    "rectangle", "rectangles", "red", "region", "regions", "remaining", "revolution", "revolutions", "ribbon",
    "ribbons", "ring", "rings", "rock", "rocks", "room", "rooms", "roots", "rose", "roses", "round", "rounds", "route",
    "routes", "row", "rows", "rpm", "rupee", "rupees", "sandwich", "sandwiches", "seat", "seats", "seed", "seeds",
    "segment", "segments", "sequence", "sequences", "set", "sets", "shape", "shapes", "sheep", "sheet", "sheets",
    "shelf", "shell", "shells", "shelves", "shirt", "shirts", "shoe", "shoes", "side", "sides", "slice", "slices",
    "snack", "snacks", "sock", "socks", "sold", "solution", "solutions", "song", "songs", "sphere", "spheres", "spoon",
    "spoons", "sq", "square", "squared", "squares", "stamp", "stamps", "star", "stars", "step", "steps", "stick",
    "sticker", "stickers", "sticks", "stone", "stones", "student", "students", "subset", "subsets", "table", "tables",
    "tablespoon", "tablespoons", "tall", "task", "tasks", "tbsp", "teacher", "teachers", "team", "teams", "teaspoon",
    "teaspoons", "term", "terms", "test", "tests", "ticket", "tickets", "tile", "tiles", "time", "total", "toy", "toys",
    "train", "trains", "tree", "trees", "triangle", "triangles", "trip", "trips", "truck", "trucks", "tsp", "tuple",
    "tuples", "turn", "turns", "unique", "unordered", "used", "value", "values", "vase", "vases", "vertex", "vertices",
    "visitor", "visitors", "vote", "votes", "way", "ways", "wheel", "wheels", "white", "whole", "wide", "window",
    "windows", "winner", "winners", "woman", "women", "word", "words", "worker", "workers", "yen", "yuan", "zeros",
};

/* As they are written: their letters' case is a part of them. */
static const char *const symbols[] = {
    "Ah", "CNY", "EUR", "GBP", "GHz", "GPa", "GW", "GeV", "INR", "JPY", "MHz", "MJ", "MN", "MPa", "MV", "MW", "MeV",
    "Omega", "RMB", "Torr", "USD", "Wh", "amu", "atm", "au", "bar", "becquerel", "cL", "candela", "cc", "centimeters",
    "cg", "cm", "curie", "dB", "dL", "decimeters", "dg", "dm", "eV", "farad", "fathom", "fathoms", "fl", "fps",
    "furlong", "furlongs", "gal", "gallons", "gigahertz", "gray", "hPa", "henry", "hr", "hrs", "kA", "kHz", "kJ", "kN",
    "kPa", "kV", "kW", "kWh", "keV", "kg", "kilohertz", "kilojoule", "kilojoules", "kilometers", "kilopascal",
    "kilopascals", "kilowatt", "kilowatts", "km", "kmh", "kmol", "kph", "lbs", "league", "leagues", "light", "lumen",
    "lux", "mA", "mL", "mV", "mW", "megahertz", "megawatt", "megawatts", "mg", "mi", "micrometer", "micrometers",
    "micron", "microns", "microsecond", "microseconds", "millimeters", "min", "mins", "mm", "mmHg", "mmol", "mo", "mol",
    "molar", "mos", "mph", "ms", "nanometer", "nanometers", "nanosecond", "nanoseconds", "nm", "ns", "ohm", "ohms",
    "oz", "parsec", "parsecs", "psi", "rad", "rads", "sec", "secs", "sievert", "sqft", "sqm", "sr", "tesla", "torr",
    "ug", "um", "us", "weber", "wk", "wks", "yr", "yrs",
};
/* clang-format on */

static bool is_sorted_in(const char *const *list, size_t count, struct text word)
{
    size_t low = 0;

    while (low < count) {
        size_t middle = low + (count - low) / 2;
        size_t length = strlen(list[middle]);
        int order = memcmp(word.data, list[middle], word.length_bytes < length ? word.length_bytes : length);
        if (order == 0 && word.length_bytes == length)
            return true;
        if (order < 0 || (order == 0 && word.length_bytes < length))
            count = middle;
        else
            low = middle + 1;
    }
    return false;
}

bool math_is_counted(struct text word)
{
    char lower[MATH_WORD_BYTES];
    struct text folded = math_lowered(word, lower);

    return is_sorted_in(symbols, ARRAY_LENGTH(symbols), word) ||
           (folded.length_bytes && is_sorted_in(nouns, ARRAY_LENGTH(nouns), folded));
}
