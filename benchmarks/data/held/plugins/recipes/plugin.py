"""Stubs of recipes: only the plans are measured, nothing is called."""


def find_recipes(ingredients, diet=None, max_minutes=None):
    raise NotImplementedError


def get_recipe(dish, servings=None):
    raise NotImplementedError
