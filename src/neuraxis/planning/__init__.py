"""Plans: build, check, load, save and draw them."""
