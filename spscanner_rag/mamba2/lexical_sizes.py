"""How many numbers the lexical channel gives the model of a token and of a unit."""

MATCH_CLASSES = 7
"""Rows of the match embedding: 0 for no match, 1 to 5 for a word that also occurs in
the query, by its idf in the collection, 6 for a token of the query itself."""

# number of lexical scores of a unit's surroundings, in addition to its own score
SURROUNDINGS = 3
# number of features of how well a token's word matches the query in meaning
SOFT_FEATURES = 4
# number of a unit's scores by the meaning of words, in addition to the lexical ones
SOFT_SCORES = 12
