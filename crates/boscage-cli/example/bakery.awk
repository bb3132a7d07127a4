# The cost of a loaf, in points that a strict jury takes off. Some knobs depend on each other: the oven's heat with the time
# in it, yeast with the hours of proofing, water with the flour.
function square(x) { return x * x }
BEGIN {
    for (i = 1; i < ARGC; i++) { split(ARGV[i], pair, "="); knob[pair[1]] = pair[2] }
    # The hotter, the shorter.
    crust = (knob["oven"] - 235) / 40 + (knob["bake"] - 28) / 12
    cost = 40 * square(crust) + 6 * square((knob["oven"] - 235) / 40)
    # The less yeast, the longer; warmth counts for itself.
    rise = log(knob["yeast"] / 2) + log(knob["hours"] / 6)
    cost += 12 * square(rise) + 3 * square(log(knob["hours"] / 6))
    cost += 8 * square((knob["warmth"] - 22) / 10)
    # Whole grain drinks more water.
    wants = knob["flour"] == "white" ? 0.68 : knob["flour"] == "whole" ? 0.78 : 0.83
    taste = knob["flour"] == "white" ? 4 : knob["flour"] == "whole" ? 0 : 2
    cost += 1500 * square(knob["hydration"] - wants) + taste
    cost += 5 * square((knob["knead"] - 12) / 6)
    cost += 6 * square(knob["salt"] - 1.9) + 0.4 * square(knob["sugar"] - 1.5)
    cost += 5 * square(knob["steam"] - 0.7)
    if (knob["stone"] != "true") cost += 3
    cost += knob["rack"] == "middle" ? 0 : knob["rack"] == "bottom" ? 2 : 4
    cost += 0.05 * square(knob["doors"])
    printf "cost: %.6f\n", cost
}
